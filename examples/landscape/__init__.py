"""The loss of a small network seen from above, along two directions at a time."""
