"""The simplest model of names: one letter decides the next, by counting and by gradient."""
