"""Networks of a hundred layers at initialisation: which weights preserve the signal, forward and backward."""
