"""Token mixers: what moves between positions, one equation a file."""
