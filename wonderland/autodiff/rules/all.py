"""Imports every file of rules, so that their rules are in the table."""

from wonderland.autodiff.rules import (
    factorizations,
    fourier,
    kernels,
    linalg,
    losses,
    norms,
    pointwise,
    pooling,
    products,
    reductions,
    resampling,
    scatter,
    shapes,
)

__all__ = [
    "factorizations",
    "fourier",
    "kernels",
    "linalg",
    "losses",
    "norms",
    "pointwise",
    "pooling",
    "products",
    "reductions",
    "resampling",
    "scatter",
    "shapes",
]
