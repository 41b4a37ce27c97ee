"""Linear models with closed answers: what they predict, which rows drive it, and how sure it is."""

from wonderland.models.linear.data import append_one
from wonderland.models.linear.descent import Descent, descend
from wonderland.models.linear.dual import Drivers, drivers, dual_weights, hat_matrix
from wonderland.models.linear.inference import Intervals, coefficient_intervals, noise_variance, prediction_intervals
from wonderland.models.linear.least_squares import LinearFit, least_squares
from wonderland.models.linear.logistic import LogisticFit, logistic_regression
from wonderland.models.linear.ridge import ridge_regression
from wonderland.models.linear.softmax import SoftmaxFit, softmax_regression
from wonderland.models.linear.synthetic import synthetic

__all__ = [
    "Descent",
    "Drivers",
    "Intervals",
    "LinearFit",
    "LogisticFit",
    "SoftmaxFit",
    "append_one",
    "coefficient_intervals",
    "descend",
    "drivers",
    "dual_weights",
    "hat_matrix",
    "least_squares",
    "logistic_regression",
    "noise_variance",
    "prediction_intervals",
    "ridge_regression",
    "softmax_regression",
    "synthetic",
]
