"""Calibration, conformal prediction, uncertainty."""

from wonderland.trust.calibration import Bin, ece, fit_temperature, log_softmax, reliability
from wonderland.trust.conformal import Scores, check_level, misfit
from wonderland.trust.weights import simplex

__all__ = [
    "Bin",
    "Scores",
    "check_level",
    "ece",
    "fit_temperature",
    "log_softmax",
    "misfit",
    "reliability",
    "simplex",
]
