"""The loss surface of a small network, along two directions at a time."""
