"""Cora: a citation graph by five methods."""
