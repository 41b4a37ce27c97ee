"""Bands over a gap in the data, by every way to know what a network does not know."""
