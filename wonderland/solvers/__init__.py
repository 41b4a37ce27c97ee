"""Linear models: least squares, ridge, logistic and softmax regression, influence of rows, and intervals."""

from wonderland.solvers.bayesian import BayesianFit, bayesian_regression
from wonderland.solvers.data import append_one
from wonderland.solvers.descent import Descent, descend
from wonderland.solvers.dual import InfluentialRows, dual_weights, hat_matrix, influential_rows
from wonderland.solvers.generalised import GeneralisedFit, generalised_linear
from wonderland.solvers.inference import Intervals, coefficient_intervals, noise_variance, prediction_intervals
from wonderland.solvers.kmeans import Clusters, kmeans
from wonderland.solvers.least_squares import LinearFit, least_squares
from wonderland.solvers.logistic import LogisticFit, logistic_regression
from wonderland.solvers.neighbours import Nearest, Neighbours
from wonderland.solvers.power_law import PowerLaw, best_size, power_law
from wonderland.solvers.ridge import ridge_regression
from wonderland.solvers.softmax import SoftmaxFit, softmax_regression
from wonderland.solvers.synthetic import synthetic

__all__ = [
    "BayesianFit",
    "Clusters",
    "Descent",
    "GeneralisedFit",
    "InfluentialRows",
    "Intervals",
    "LinearFit",
    "LogisticFit",
    "Nearest",
    "Neighbours",
    "PowerLaw",
    "SoftmaxFit",
    "append_one",
    "bayesian_regression",
    "best_size",
    "coefficient_intervals",
    "descend",
    "dual_weights",
    "generalised_linear",
    "hat_matrix",
    "influential_rows",
    "kmeans",
    "least_squares",
    "logistic_regression",
    "noise_variance",
    "power_law",
    "prediction_intervals",
    "ridge_regression",
    "softmax_regression",
    "synthetic",
]
