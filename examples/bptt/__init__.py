"""Backpropagation through time: full, truncated regularly, and truncated at random without bias."""
