"""Gaussian processes: distributions over functions, with kernels, exact and sparse inference, and classification."""

from wonderland.probability.gaussian_process.classification import LaplaceClassifier, laplace_classifier
from wonderland.probability.gaussian_process.kernels import (
    RBF,
    ArcSine,
    Constant,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Sum,
)
from wonderland.probability.gaussian_process.regression import Evidence, GaussianProcess, Posterior
from wonderland.probability.gaussian_process.sparse import SparsePosterior, fit_sparse
from wonderland.probability.gaussian_process.variational import VariationalPosterior, fit_variational

__all__ = [
    "RBF",
    "ArcSine",
    "Constant",
    "Evidence",
    "GaussianProcess",
    "Kernel",
    "LaplaceClassifier",
    "Linear",
    "Matern",
    "Periodic",
    "Polynomial",
    "Posterior",
    "Product",
    "RationalQuadratic",
    "SparsePosterior",
    "Sum",
    "VariationalPosterior",
    "fit_sparse",
    "fit_variational",
    "laplace_classifier",
]
