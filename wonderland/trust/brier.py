"""The Brier score, and the parts it is made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wonderland.trust.arrays import class_labels, class_probabilities, same_rows
from wonderland.trust.calibration import places


@dataclass(frozen=True)
class BrierParts:
    """Parts of a Brier score: `score` is reliability - resolution + uncertainty + within_variance - within_covariance."""

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float

    @property
    def total(self) -> float:
        """The sum of the parts, equal to the score up to rounding."""
        return self.reliability - self.resolution + self.uncertainty + self.within_variance - self.within_covariance


def brier(probabilities: Any, y: Any) -> float:
    r"""The mean squared distance of probabilities from what happened, summed over classes.

    .. math:: \frac1n \sum_i \sum_k (p_{ik} - [y_i = k])^2

    For two classes this is twice the score of the second class alone. Shapes: (n, c), (n,). Paper: Brier, 1950.

    >>> round(brier([[0.8, 0.2], [0.4, 0.6]], [0, 1]), 2)
    0.2
    """
    array = class_probabilities(probabilities)
    labels = class_labels(y, array.shape[1])
    same_rows("probabilities", array, "y", labels)
    return float(np.square(array - np.eye(array.shape[1])[labels]).sum(1).mean())


def brier_decomposition(probabilities: Any, y: Any, *, bins: int | None = 15, equal_mass: bool = False) -> BrierParts:
    r"""The Brier score as reliability (miscalibration) minus resolution plus uncertainty, and the variance within bins.

    .. math::
        \mathrm{BS} = \underbrace{\sum_b \tfrac{n_b}{n} (\bar p_b - \bar y_b)^2}_{\text{reliability}}
        - \underbrace{\sum_b \tfrac{n_b}{n} (\bar y_b - \bar y)^2}_{\text{resolution}}
        + \underbrace{\bar y (1 - \bar y)}_{\text{uncertainty}}
        + \underbrace{\tfrac1n \sum_i (p_i - \bar p_{b(i)})^2}_{\text{variance in bins}}
        - \underbrace{\tfrac2n \sum_i (p_i - \bar p_{b(i)})(y_i - \bar y_{b(i)})}_{\text{covariance in bins}}

    for each class, summed over classes. Murphy's three parts alone are exact only when all forecasts of a bin are equal;
    the last two parts make the sum exact for any bins. `bins=None` puts equal forecasts together, and both are zero.

    Shapes: probabilities (n, c), y (n,). Papers: Murphy, 1973; Stephenson et al., 2008.

    >>> parts = brier_decomposition([[0.8, 0.2], [0.4, 0.6], [0.8, 0.2]], [0, 1, 1])
    >>> abs(parts.total - parts.score) < 1e-15
    True
    """
    array = class_probabilities(probabilities)
    rows, classes = array.shape
    labels = class_labels(y, classes)
    score = brier(array, labels)
    parts = np.zeros(5)
    for k in range(classes):
        claimed, true = array[:, k], (labels == k).astype(np.float64)
        if bins is None:
            place = np.unique(claimed, return_inverse=True)[1]
        else:
            place = np.unique(places(claimed, bins, equal_mass), return_inverse=True)[1]
        count = np.bincount(place)
        p, t = np.bincount(place, claimed) / count, np.bincount(place, true) / count
        base = true.mean()
        inside = claimed - p[place]
        parts += [
            (count * (p - t) ** 2).sum() / rows,
            (count * (t - base) ** 2).sum() / rows,
            base * (1 - base),
            (inside**2).mean(),
            2 * (inside * (true - t[place])).mean(),
        ]
    return BrierParts(score, *parts.tolist())
