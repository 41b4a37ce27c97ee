"""Token mixers: modules in which positions read each other, one equation a file."""
