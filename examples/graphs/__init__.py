"""Graphs: what messages can and cannot tell."""
