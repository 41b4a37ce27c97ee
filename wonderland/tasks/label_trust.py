"""Trust in several labels: a calibrated probability for each label, thresholds for F1, and control of missed labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.tasks.task import Trust
from wonderland.trust.conformal import check_level
from wonderland.trust.risk_control import THRESHOLDS, controlled_threshold, rows_needed
from wonderland.trust.scaling import fit_logistic, platt_targets


@dataclass(frozen=True)
class LabelTrust(Trust):
    """`scale` holds slope and offset of the log-odds of each label (k, 2), `thresholds` when it is predicted (k,).

    `risk` is the mean share of missed labels of `rows` calibration rows at each of `THRESHOLDS`; `shares` weighs variants of
    members, which form `groups`.
    """

    level: float
    scale: ndarray
    thresholds: ndarray
    risk: ndarray
    rows: int
    shares: ndarray
    groups: int = 1
    options: Any = None

    def probabilities(self, log_odds: ndarray) -> ndarray:
        """Calibrated probabilities. Shapes: (n, k) -> (n, k)."""
        return _sigmoid(log_odds * self.scale[:, 0] + self.scale[:, 1])

    def threshold(self, level: float) -> float:
        """Labels with at least this probability belong to the set; 0 where there are too few calibration rows."""
        return controlled_threshold(self.risk, self.rows, 1 - level) or 0.0

    def note(self, level: float) -> str:
        """A sentence for too few calibration rows; empty otherwise."""
        needed = rows_needed(1 - level)
        if self.rows >= needed:
            return ""
        return f"The {level:.0%} sets hold every label: they need {needed} calibration rows, and there are {self.rows}."

    def to_json(self) -> dict[str, Any]:
        return {
            "level": self.level, "scale": self.scale.tolist(), "thresholds": self.thresholds.tolist(),
            "risk": self.risk.tolist(), "calibration_rows": self.rows, "shares": self.shares.tolist(), "groups": self.groups,
        }  # fmt: skip

    @staticmethod
    def from_json(value: Any, labels: int) -> "LabelTrust":
        """Read back from `to_json`; damaged content is refused."""
        try:
            scale, limits = np.asarray(value["scale"], np.float64), np.asarray(value["thresholds"], np.float64)
            risk, shares = np.asarray(value["risk"], np.float64), np.asarray(value["shares"], np.float64)
            rows, groups = value["calibration_rows"], value["groups"]
            fits = scale.shape == (labels, 2) and limits.shape == (labels,) and risk.shape == THRESHOLDS.shape
            sane = all(np.isfinite(array).all() for array in (scale, limits, risk, shares))
            rising = (np.diff(risk) >= -1e-12).all() and risk.min() >= 0 and risk.max() <= 1 + 1e-12
            weights = shares.ndim == 1 and (shares >= 0).all() and 0.99 < shares.sum() < 1.01
            counts = isinstance(rows, int) and isinstance(groups, int) and rows >= 1 and 1 <= groups <= 999
            if not (fits and sane and rising and weights and counts):
                raise ValueError
            level = check_level(float(value["level"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WonderlandError("trust.json lacks the calibration of labels: it is damaged.") from error
        return LabelTrust(level, scale, limits, risk, rows, shares, groups)


def fit_scale(log_odds: ndarray, y: ndarray) -> ndarray:
    """Slope and offset of each label's log-odds, by logistic regression on Platt's targets; a label seen too rarely shares the
    slope and offset of all labels together. Shapes: (n, k), (n, k) -> (k, 2)."""
    clipped = np.clip(log_odds, -30, 30)

    def fit(odds: ndarray, true: ndarray) -> ndarray:
        return fit_logistic(np.stack([odds, np.ones_like(odds)], 1), platt_targets(true), ridge=1e-3)

    together = fit(clipped.ravel(), y.ravel())
    together = together if together[0] > 0 else np.array([1.0, 0.0])
    scale = np.tile(together, (y.shape[1], 1))
    for label in range(y.shape[1]):
        seen = int(y[:, label].sum())
        if min(seen, len(y) - seen) >= 20:
            own = fit(clipped[:, label], y[:, label])
            scale[label] = own if own[0] > 0 else together
    return scale


def f1_thresholds(probabilities: ndarray, y: ndarray) -> ndarray:
    """For each label the threshold with the best F1 on these rows, halfway between two probabilities; 0.5 for rare labels.

    Shapes: (n, k), (n, k) -> (k,).
    """
    best = np.full(y.shape[1], 0.5)
    for label in range(y.shape[1]):
        true, chance = y[:, label] > 0, probabilities[:, label]
        if min(true.sum(), len(true) - true.sum()) < 20:
            continue
        order = np.argsort(-chance, kind="stable")
        hits = np.cumsum(true[order])
        f1 = 2 * hits / (np.arange(1, len(true) + 1) + true.sum())
        place = int(f1.argmax())
        after = chance[order[min(place + 1, len(true) - 1)]]
        best[label] = (chance[order[place]] + after) / 2
    return best


def _sigmoid(x: ndarray) -> ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -700, 700)))
