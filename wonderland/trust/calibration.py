"""Calibration: do things said with 80 % confidence happen 80 % of the time? Measured in bins, with their bias removed."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.arrays import class_labels, class_probabilities, same_rows
from wonderland.trust.temperature import fit_temperature, log_softmax

__all__ = ["Bin", "classwise_ece", "ece", "fit_temperature", "log_softmax", "maximum_calibration_error", "reliability"]


@dataclass(frozen=True)
class Bin:
    """Predictions of similar confidence: what they claimed and what came true."""

    confidence: float
    accuracy: float
    count: int


def places(confidence: ndarray, bins: int, equal_mass: bool = False) -> ndarray:
    """The bin of each confidence: [k / bins, (k + 1) / bins), or between quantiles. Shapes: (n,) -> (n,)."""
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise WonderlandError(f"`bins` has to be a whole number of at least 1, not {bins}.")
    edges = np.linspace(0.0, 1.0, bins + 1)
    if equal_mass:
        edges = np.quantile(confidence, edges)
    return np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, bins - 1)


def binned(confidence: ndarray, outcome: ndarray, bins: int, equal_mass: bool = False) -> list[Bin]:
    """Bins that are not empty, of claimed chances and what happened. Shapes: (n,), (n,)."""
    place = places(confidence, bins, equal_mass)
    count = np.bincount(place, minlength=bins)
    claimed, true = np.bincount(place, confidence, bins), np.bincount(place, outcome, bins)
    return [
        Bin(float(claimed[b] / count[b]), float(true[b] / count[b]), int(count[b]))
        for b in np.flatnonzero(count).tolist()
    ]


def reliability(probabilities: Any, y: Any, *, bins: int = 15, equal_mass: bool = False) -> list[Bin]:
    """Rows by the confidence of their predicted class, in bins of equal width or equal mass, without the empty ones.

    Shapes: probabilities (n, c), y (n,).

    >>> reliability([[0.75, 0.25]] * 4, [0, 0, 1, 1])
    [Bin(confidence=0.75, accuracy=0.5, count=4)]
    """
    # Only the largest of a row counts here: callers may leave the others out.
    array = class_probabilities(probabilities, sums=False)
    labels = class_labels(y, array.shape[1])
    same_rows("probabilities", array, "y", labels)
    return binned(array.max(1), (array.argmax(1) == labels).astype(np.float64), bins, equal_mass)


def folded_mean(gap: float, deviation: float) -> float:
    r"""The mean of :math:`|z|` for z normal with mean `gap`: what a bin's error looks like on average.

    >>> round(folded_mean(0.0, 1.0), 4)
    0.7979
    """
    if deviation <= 0:
        return abs(gap)
    ratio = gap / deviation
    return deviation * math.sqrt(2 / math.pi) * math.exp(-ratio * ratio / 2) + gap * math.erf(ratio / math.sqrt(2))


def summarise(bins: list[Bin], norm: int = 1, debiased: bool = False) -> float:
    """The error of a list of bins; see `ece`."""
    rows = sum(b.count for b in bins)
    if norm == 1:
        total = 0.0
        for b in bins:
            gap = abs(b.accuracy - b.confidence)
            bias = folded_mean(gap, math.sqrt(b.accuracy * (1 - b.accuracy) / b.count)) - gap if debiased else 0.0
            total += b.count / rows * (gap - bias)
        return max(0.0, total)
    if norm == 2:
        total = 0.0
        for b in bins:
            bias = b.accuracy * (1 - b.accuracy) / (b.count - 1) if debiased and b.count > 1 else 0.0
            total += b.count / rows * ((b.accuracy - b.confidence) ** 2 - bias)
        return math.sqrt(max(0.0, total))
    raise WonderlandError(f"`norm` is 1 (absolute errors) or 2 (squared errors), not {norm}.")


def ece(
    probabilities: Any, y: Any, *, bins: int = 15, equal_mass: bool = False, norm: int = 1, debiased: bool = False
) -> float:
    r"""Expected calibration error of the predicted class.

    .. math:: \sum_b \frac{n_b}{n} \bigl| \mathrm{accuracy}_b - \mathrm{confidence}_b \bigr|

    Few rows in a bin make the error look larger than it is. `debiased` takes that off: with norm 2 the variance
    :math:`a_b (1 - a_b) / (n_b - 1)` of each bin's accuracy, with norm 1 the amount by which the mean of
    :math:`|z|, z \sim N(g_b, a_b (1 - a_b) / n_b)` exceeds the gap :math:`g_b`.

    Shapes: probabilities (n, c), y (n,). Book: Alice 4.3.4. Papers: Naeini et al., 2015; Kumar et al., 2019.

    >>> round(ece([[0.9, 0.1]] * 10, [0] * 8 + [1] * 2), 3)
    0.1
    >>> round(ece([[0.9, 0.1]] * 10, [0] * 8 + [1] * 2, debiased=True), 3)
    0.069
    """
    return summarise(reliability(probabilities, y, bins=bins, equal_mass=equal_mass), norm, debiased)


def maximum_calibration_error(probabilities: Any, y: Any, *, bins: int = 15, equal_mass: bool = False) -> float:
    r"""The error of the worst bin, :math:`\max_b | \mathrm{accuracy}_b - \mathrm{confidence}_b |`.

    >>> round(maximum_calibration_error([[0.9, 0.1]] * 10, [0] * 8 + [1] * 2), 3)
    0.1
    """
    return max(abs(b.accuracy - b.confidence) for b in reliability(probabilities, y, bins=bins, equal_mass=equal_mass))


def classwise_ece(
    probabilities: Any, y: Any, *, bins: int = 15, equal_mass: bool = False, norm: int = 1, debiased: bool = False
) -> ndarray:
    """Calibration error of each class's own probability, right or wrong, predicted or not. Shapes: (n, c), (n,) -> (c,).

    Its mean is the class-wise ECE; for two classes netcal's ECE is the entry of class 1. Papers: Kull et al., 2019; Nixon et al., 2019.

    >>> classwise_ece([[0.9, 0.1]] * 10, [0] * 8 + [1] * 2).round(3)
    array([0.1, 0.1])
    """
    array = class_probabilities(probabilities)
    labels = class_labels(y, array.shape[1])
    same_rows("probabilities", array, "y", labels)
    return np.array(
        [
            summarise(binned(array[:, k], (labels == k).astype(np.float64), bins, equal_mass), norm, debiased)
            for k in range(array.shape[1])
        ]
    )
