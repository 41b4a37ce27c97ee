"""Exclusive or: four points that no line can part, and the smallest networks that can."""
