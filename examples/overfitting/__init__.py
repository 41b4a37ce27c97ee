"""Overfitting and double descent: the test error of models with more parameters than data."""
