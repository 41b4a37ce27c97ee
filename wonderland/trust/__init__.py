"""Calibration, conformal prediction, uncertainty."""

from wonderland.trust.adaptive import AdaptiveConformal
from wonderland.trust.bootstrap import Interval, bootstrap
from wonderland.trust.brier import BrierParts, brier, brier_decomposition
from wonderland.trust.calibration import Bin, classwise_ece, ece, maximum_calibration_error, reliability
from wonderland.trust.choose_calibrator import Chosen, choose_calibrator
from wonderland.trust.column_shift import ColumnShift, benjamini_hochberg, column_shift, holm
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
from wonderland.trust.decisions import (
    Abstention,
    CoverageRisk,
    abstain,
    best_by_utility,
    cheapest,
    coverage_risk,
    expected_cost,
    mean_cost,
)
from wonderland.trust.drift import Adwin, PageHinkley
from wonderland.trust.isotonic import isotonic_regression
from wonderland.trust.label_shift import LabelScores, LabelShift, black_box_shift, em_shift
from wonderland.trust.laplace import KroneckerLaplace, LastLayerLaplace, Predicted
from wonderland.trust.network_posterior import NetworkPosterior
from wonderland.trust.out_of_distribution import (
    Detection,
    Mahalanobis,
    confidence_scores,
    detection,
    energy_scores,
    mahalanobis,
    neighbour_scores,
    strange_limit,
    strangeness,
)
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
from wonderland.trust.reference import Reference
from wonderland.trust.risk_control import controlled_threshold, false_negative_rates
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
from wonderland.trust.shift import Shift, compare, estimate_labels
from wonderland.trust.swag import Swag
from wonderland.trust.temperature import fit_temperature, log_softmax
from wonderland.trust.two_sample import TwoSample, auc, classifier_test, density_ratio, mmd_test
from wonderland.trust.uncertainty import Uncertainty, class_uncertainty, ensemble_outputs, number_uncertainty
from wonderland.trust.weights import simplex

__all__ = [
    "CALIBRATORS",
    "Abstention",
    "AdaptiveConformal",
    "Adwin",
    "Bin",
    "BrierParts",
    "Calibrator",
    "Chosen",
    "ColumnShift",
    "ConformalSets",
    "CoverageRisk",
    "Detection",
    "Interval",
    "KroneckerLaplace",
    "LabelScores",
    "LabelShift",
    "LastLayerLaplace",
    "Mahalanobis",
    "NetworkPosterior",
    "PageHinkley",
    "Predicted",
    "QuantileCalibration",
    "QuantileMap",
    "Reference",
    "Scores",
    "Shift",
    "Swag",
    "TwoSample",
    "Uncertainty",
    "abstain",
    "aps_scores",
    "auc",
    "benjamini_hochberg",
    "best_by_utility",
    "beta_scaling",
    "black_box_shift",
    "bootstrap",
    "brier",
    "brier_decomposition",
    "cheapest",
    "check_level",
    "choose_calibrator",
    "class_uncertainty",
    "classifier_test",
    "classwise_ece",
    "column_shift",
    "compare",
    "confidence_scores",
    "conformal_quantile",
    "conformal_sets",
    "controlled_threshold",
    "coverage_risk",
    "cqr_intervals",
    "cross_sets",
    "crps_gaussian",
    "cv_plus",
    "density_ratio",
    "detection",
    "ece",
    "em_shift",
    "energy_scores",
    "ensemble_outputs",
    "estimate_labels",
    "expected_cost",
    "false_negative_rates",
    "fit_temperature",
    "holm",
    "identity_scaling",
    "isotonic_regression",
    "isotonic_scaling",
    "jackknife_minmax",
    "jackknife_plus",
    "lac_scores",
    "leave_one_out_linear",
    "log_softmax",
    "mahalanobis",
    "matrix_scaling",
    "maximum_calibration_error",
    "mean_cost",
    "misfit",
    "mmd_test",
    "neighbour_scores",
    "number_uncertainty",
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
    "strange_limit",
    "strangeness",
    "temperature_scaling",
    "vector_scaling",
    "weighted_quantile",
]
