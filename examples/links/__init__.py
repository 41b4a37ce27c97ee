"""Links: which papers of Cora cite each other, told from the other citations."""
