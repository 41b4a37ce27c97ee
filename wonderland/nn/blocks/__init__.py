"""Blocks, stacks and heads: how mixers are put together."""
