"""FreeSolv: how much energy a molecule gives off in water, by a message passing network on its atoms and bonds."""
