"""Linear models: least squares, ridge, logistic and softmax regression, influence of rows, and intervals."""

from wonderland.solvers.data import append_one
from wonderland.solvers.descent import Descent, descend
from wonderland.solvers.dual import InfluentialRows, dual_weights, hat_matrix, influential_rows
from wonderland.solvers.inference import Intervals, coefficient_intervals, noise_variance, prediction_intervals
from wonderland.solvers.least_squares import LinearFit, least_squares
from wonderland.solvers.logistic import LogisticFit, logistic_regression
from wonderland.solvers.ridge import ridge_regression
from wonderland.solvers.softmax import SoftmaxFit, softmax_regression
from wonderland.solvers.synthetic import synthetic

__all__ = [
    "Descent",
    "InfluentialRows",
    "Intervals",
    "LinearFit",
    "LogisticFit",
    "SoftmaxFit",
    "append_one",
    "coefficient_intervals",
    "descend",
    "dual_weights",
    "hat_matrix",
    "influential_rows",
    "least_squares",
    "logistic_regression",
    "noise_variance",
    "prediction_intervals",
    "ridge_regression",
    "softmax_regression",
    "synthetic",
]
