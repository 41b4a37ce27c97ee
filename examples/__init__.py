"""Labs of the books and small scripts. A package of its own, so that no other package of this name stands before it."""
