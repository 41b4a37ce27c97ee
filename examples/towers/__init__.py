"""A hundred layers at the first step: which first weights keep a signal alive, forward and backward."""
