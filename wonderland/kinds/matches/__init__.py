"""Texts that belong together, and are to be found by each other."""
