"""Ratings and clicks: who chose what, and when."""
