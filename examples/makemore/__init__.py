"""The language model of Bengio et al. (2003) on names, plain and with batch norm, as makemore trains it."""
