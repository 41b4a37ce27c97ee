"""Signals: many series, each with a class or a number."""
