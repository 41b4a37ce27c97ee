"""Bigram models of names: by counting, and by gradient descent."""
