"""Gaussian processes of D2L chapter 18, of GPyTorch's first notebook and of scikit-learn's documentation."""
