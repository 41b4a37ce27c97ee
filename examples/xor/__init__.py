"""Exclusive or: four points that are not linearly separable, and the smallest networks that separate them."""
