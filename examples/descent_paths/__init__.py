"""Gradient descent with and without momentum on the books' functions: where the paths lead, and when they diverge."""
