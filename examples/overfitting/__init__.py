"""Overfitting and double descent: what happens to the test error when a model grows past its data."""
