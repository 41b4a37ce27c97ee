"""Calibration, conformal prediction, uncertainty."""

from wonderland.trust.adaptive import AdaptiveConformal
from wonderland.trust.bootstrap import Interval, bootstrap
from wonderland.trust.brier import BrierParts, brier, brier_decomposition
from wonderland.trust.calibration import Bin, classwise_ece, ece, maximum_calibration_error, reliability
from wonderland.trust.choose_calibrator import Chosen, choose_calibrator
from wonderland.trust.conformal import Scores, check_level, misfit
from wonderland.trust.conformal_intervals import (
    cqr_intervals,
    cv_plus,
    jackknife_minmax,
    jackknife_plus,
    leave_one_out_linear,
    split_intervals,
)
from wonderland.trust.conformal_quantile import conformal_quantile, weighted_quantile
from wonderland.trust.conformal_scores import aps_scores, lac_scores, raps_scores
from wonderland.trust.conformal_sets import ConformalSets, conformal_sets, cross_sets
from wonderland.trust.isotonic import isotonic_regression
from wonderland.trust.quantile_calibration import (
    QuantileCalibration,
    QuantileMap,
    crps_gaussian,
    pinball,
    pit_gaussian,
    pit_samples,
    quantile_calibration,
    recalibrate_quantiles,
)
from wonderland.trust.scaling import (
    CALIBRATORS,
    Calibrator,
    beta_scaling,
    identity_scaling,
    isotonic_scaling,
    matrix_scaling,
    platt_scaling,
    temperature_scaling,
    vector_scaling,
)
from wonderland.trust.temperature import fit_temperature, log_softmax
from wonderland.trust.weights import simplex

__all__ = [
    "CALIBRATORS",
    "AdaptiveConformal",
    "Bin",
    "BrierParts",
    "Calibrator",
    "Chosen",
    "ConformalSets",
    "Interval",
    "QuantileCalibration",
    "QuantileMap",
    "Scores",
    "aps_scores",
    "beta_scaling",
    "bootstrap",
    "brier",
    "brier_decomposition",
    "check_level",
    "choose_calibrator",
    "classwise_ece",
    "conformal_quantile",
    "conformal_sets",
    "cqr_intervals",
    "cross_sets",
    "crps_gaussian",
    "cv_plus",
    "ece",
    "fit_temperature",
    "identity_scaling",
    "isotonic_regression",
    "isotonic_scaling",
    "jackknife_minmax",
    "jackknife_plus",
    "lac_scores",
    "leave_one_out_linear",
    "log_softmax",
    "matrix_scaling",
    "maximum_calibration_error",
    "misfit",
    "pinball",
    "pit_gaussian",
    "pit_samples",
    "platt_scaling",
    "quantile_calibration",
    "raps_scores",
    "recalibrate_quantiles",
    "reliability",
    "simplex",
    "split_intervals",
    "temperature_scaling",
    "vector_scaling",
    "weighted_quantile",
]
