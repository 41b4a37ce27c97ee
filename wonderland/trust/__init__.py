"""Calibration, conformal prediction, uncertainty."""

from wonderland.trust.calibration import Bin, ece, fit_temperature, log_softmax, reliability
from wonderland.trust.conformal import Scores, check_level, misfit
from wonderland.tasks.token_trust import TokenTrust
from wonderland.tasks.trust import Held, Trust, believed, judged
from wonderland.trust.weights import simplex

__all__ = [
    "Bin",
    "Held",
    "Scores",
    "TokenTrust",
    "Trust",
    "believed",
    "check_level",
    "ece",
    "fit_temperature",
    "judged",
    "log_softmax",
    "misfit",
    "reliability",
    "simplex",
]
