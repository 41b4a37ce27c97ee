"""Blocks for images."""
