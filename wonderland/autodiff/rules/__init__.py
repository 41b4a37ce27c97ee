"""Derivative rules, one family of primitives a file."""
