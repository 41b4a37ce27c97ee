"""MUTAG: which of 188 molecules change DNA, by a graph isomorphism network in ten folds."""
