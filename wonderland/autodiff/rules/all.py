"""Every file of rules, read once."""

from wonderland.autodiff.rules import (
    factorizations,
    fourier,
    kernels,
    linalg,
    losses,
    norms,
    pointwise,
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
    "products",
    "reductions",
    "resampling",
    "scatter",
    "shapes",
]
