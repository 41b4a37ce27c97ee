"""Layers whose weights are distributions."""

from wonderland.nn.bayes.variational_linear import VariationalLinear, divergence

__all__ = ["VariationalLinear", "divergence"]
