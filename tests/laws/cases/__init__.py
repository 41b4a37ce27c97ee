"""Blocks for the battery, a file a topic: `CASES` maps a name to a function that builds a small block.

A block is tried on random numbers (3, t, block.dim). Others give their own example: `EXAMPLES` maps the same name to a
function from the length t to an `Example`. The battery moves every parameter a little, so that nothing hides behind a zero
at the start; names in `AS_BUILT` keep theirs.
"""
