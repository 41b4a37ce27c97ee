"""Abilities of runs beyond predict and evaluate, one file for each."""
