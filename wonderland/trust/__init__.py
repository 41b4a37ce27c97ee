"""Calibration, conformal prediction, uncertainty."""

from wonderland.trust.calibration import Bin, ece, fit_temperature, log_softmax, reliability
from wonderland.trust.conformal import Scores, check_level, misfit
from wonderland.trust.trust import Held, Trust

__all__ = [
    "Bin",
    "Held",
    "Scores",
    "Trust",
    "check_level",
    "ece",
    "fit_temperature",
    "log_softmax",
    "misfit",
    "reliability",
]
