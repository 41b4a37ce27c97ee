"""Naive Bayes on MNIST, as in D2L's appendix."""
