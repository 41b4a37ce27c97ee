"""A small transformer on names: the default model of makemore.py."""
