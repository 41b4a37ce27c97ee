"""Several random views of a digit, read together."""
