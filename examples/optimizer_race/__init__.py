"""Optimizers on the books' test functions: the printed traces to six digits, and the steps that each needs."""
