"""Conformal risk control: a threshold that keeps an expected loss below a bound, for losses that grow with the threshold."""

import math
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.arrays import finite

THRESHOLDS = np.linspace(0.0, 1.0, 1001)


def false_negative_rates(probabilities: Any, y: Any, thresholds: ndarray = THRESHOLDS) -> ndarray:
    """The share of a row's true labels whose probability is below each threshold; 0 for rows without labels.

    Shapes: probabilities (n, k), y (n, k) of 0 and 1, thresholds (t,) -> (n, t).

    >>> false_negative_rates([[0.9, 0.4]], [[1, 1]], np.array([0.0, 0.5, 0.95]))
    array([[0. , 0.5, 1. ]])
    """
    chances, true = finite("probabilities", probabilities, 2), np.asarray(y) > 0
    if true.shape != chances.shape:
        raise WonderlandError(
            f"`y` has the shape {true.shape}, and `probabilities` {chances.shape}: they must be equal."
        )
    rows, columns = np.nonzero(true)
    first = np.searchsorted(
        thresholds, chances[rows, columns], side="right"
    )  # the first threshold that misses the label
    missed = np.zeros((len(chances), len(thresholds) + 1))
    np.add.at(missed, (rows, first), 1.0)
    return missed.cumsum(1)[:, :-1] / np.maximum(true.sum(1, keepdims=True), 1)


def controlled_threshold(risk: Any, rows: int, most: float, thresholds: ndarray = THRESHOLDS) -> float | None:
    r"""The largest threshold whose expected loss on a new row is at most `most`; None where there are too few rows for any.

    .. math:: \hat\lambda = \max \Bigl\{ \lambda : \frac{n}{n + 1} \hat R_n(\lambda) + \frac{1}{n + 1} \le \alpha \Bigr\}

    `risk` is the mean loss of n calibration rows at each threshold; each loss is at most 1 and does not fall as the threshold
    grows. If new rows are exchangeable with them, the mean loss at the threshold is at most alpha. Paper: Angelopoulos et al., 2024.

    Shapes: risk (t,), thresholds (t,).

    >>> controlled_threshold([0.0, 0.05, 0.5], 99, 0.1, np.array([0.0, 0.5, 1.0]))
    0.5
    """
    array = finite("risk", risk, 1)
    if len(array) != len(thresholds) or (np.diff(array) < -1e-12).any():
        raise WonderlandError("`risk` must be one mean loss for each threshold, not falling as the threshold grows.")
    if rows < 1 or not 0 < most < 1:
        raise WonderlandError(f"A risk is controlled with rows and a bound between 0 and 1, not {rows} and {most}.")
    fine = np.flatnonzero((rows * array + 1) / (rows + 1) <= most + 1e-12)
    return float(thresholds[fine[-1]]) if len(fine) else None


def rows_needed(most: float) -> int:
    """How many calibration rows a bound needs at least: with fewer, even a loss of 0 on all of them does not show it.

    >>> rows_needed(0.1)
    9
    """
    return math.ceil(1 / most - 1e-9) - 1
