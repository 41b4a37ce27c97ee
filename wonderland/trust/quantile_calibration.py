"""Calibration of regression: probability integral transforms, and quantiles that are exceeded as often as they say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError, uniform
from wonderland.trust.arrays import finite, same_rows
from wonderland.trust.isotonic import isotonic_regression

LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_erf = np.vectorize(math.erf, otypes=[np.float64])


def pit_gaussian(mean: Any, scale: Any, y: Any) -> ndarray:
    r"""The probability integral transform of Gaussian predictions, uniform on [0, 1] when they are right.

    .. math:: u_i = \Phi\!\left(\frac{y_i - \mu_i}{\sigma_i}\right)

    Shapes: (n,), (n,), (n,) -> (n,). Papers: Dawid, 1984; Gneiting et al., 2007.

    >>> pit_gaussian([0.0, 0.0], [1.0, 1.0], [0.0, 1.645]).round(2)
    array([0.5 , 0.95])
    """
    centre, width, true = finite("mean", mean, 1), finite("scale", scale, 1), finite("y", y, 1)
    same_rows("mean", centre, "scale", width)
    same_rows("mean", centre, "y", true)
    if width.min() <= 0:
        raise WonderlandError(f"`scale` holds {width.min():g}: standard deviations are above 0.")
    return (1 + _erf((true - centre) / (width * math.sqrt(2)))) / 2


def pit_samples(samples: Any, y: Any, *, seed: int = 0) -> ndarray:
    r"""The transform of predictions given as draws: the share of draws below y, with ties broken at random.

    .. math:: u_i = \frac{\#\{s < y_i\} + v_i (1 + \#\{s = y_i\})}{m + 1}, \qquad v_i \sim U[0, 1]

    Uniform when y is one more draw from the same distribution. Shapes: samples (m, n), y (n,) -> (n,).

    >>> bool(0.5 < pit_samples([[0.0], [1.0], [2.0]], [1.5])[0] < 0.75)
    True
    """
    draws, true = finite("samples", samples, 2), finite("y", y, 1)
    same_rows("the columns of samples", draws.T, "y", true)
    ties = uniform(seed, 0, np.arange(len(true)), 1)[:, 0]
    return ((draws < true).sum(0) + ties * (1 + (draws == true).sum(0))) / (len(draws) + 1)


@dataclass(frozen=True)
class QuantileCalibration:
    """Levels that were promised, and how often the truth lay below those quantiles. Shapes: (k,), (k,)."""

    levels: ndarray
    observed: ndarray
    count: int

    @property
    def error(self) -> float:
        """The mean absolute difference of promised and observed levels."""
        return float(np.abs(self.levels - self.observed).mean())


def quantile_calibration(pit: Any, levels: Sequence[float] = LEVELS) -> QuantileCalibration:
    r"""How often the truth lies below each predicted quantile.

    .. math:: \hat p(\tau) = \frac1n \#\{i : u_i \le \tau\}

    Shapes: pit (n,). Paper: Kuleshov et al., 2018.

    >>> quantile_calibration([0.1, 0.2, 0.3, 0.9], levels=[0.5]).observed
    array([0.75])
    """
    values, promised = finite("pit", pit, 1), finite("levels", levels, 1)
    if values.min() < 0 or values.max() > 1:
        raise WonderlandError("`pit` has to lie between 0 and 1.")
    if promised.min() < 0 or promised.max() > 1:
        raise WonderlandError("`levels` have to lie between 0 and 1.")
    return QuantileCalibration(promised, (values[:, None] <= promised).mean(0), len(values))


@dataclass(frozen=True)
class QuantileMap:
    """A fitted map from promised to true levels. Shapes: knots (k,), values (k,), both rising."""

    knots: ndarray
    values: ndarray

    def __call__(self, level: Any) -> ndarray:
        """The level that is reached in truth by the one promised."""
        return np.interp(level, self.knots, self.values)

    def inverse(self, level: Any) -> ndarray:
        """The level to ask the model for, so that the truth lies below its quantile in the share `level`."""
        return np.interp(level, self.values, self.knots)


def recalibrate_quantiles(pit: Any) -> QuantileMap:
    """The map that makes the transforms of these rows uniform: ask for `inverse(0.9)` to get 90 %. Shapes: (n,).

    >>> narrow = pit_gaussian(np.zeros(1000), np.full(1000, 0.5), np.random.default_rng(0).normal(size=1000))
    >>> bool(recalibrate_quantiles(narrow).inverse(0.9) > 0.98)
    True
    """
    values = finite("pit", pit, 1)
    if values.min() < 0 or values.max() > 1:
        raise WonderlandError("`pit` has to lie between 0 and 1.")
    ordered = np.sort(values)
    ranks = np.arange(1, len(ordered) + 1) / (len(ordered) + 1)
    knots, heights = isotonic_regression(ordered, ranks)
    return QuantileMap(np.concatenate([[0.0], knots, [1.0]]), np.concatenate([[0.0], heights, [1.0]]))


def pinball(y: Any, quantiles: Any, levels: Sequence[float]) -> ndarray:
    r"""The loss whose minimum is the quantile: :math:`\max(\tau (y - q), (\tau - 1)(y - q))`, its mean for each level.

    Shapes: y (n,), quantiles (n, k), levels (k,) -> (k,).

    >>> pinball([1.0, 2.0], [[1.0], [1.0]], [0.9])
    array([0.45])
    """
    true, predicted, tau = finite("y", y, 1), finite("quantiles", quantiles, 2), finite("levels", levels, 1)
    same_rows("y", true, "quantiles", predicted)
    same_rows("levels", tau, "the columns of quantiles", predicted.T)
    gap = true[:, None] - predicted
    return np.maximum(tau * gap, (tau - 1) * gap).mean(0)


def crps_gaussian(mean: Any, scale: Any, y: Any) -> float:
    r"""The mean continuous ranked probability score of Gaussian predictions: absolute error for whole distributions.

    .. math:: \sigma \left[ z (2 \Phi(z) - 1) + 2 \varphi(z) - \pi^{-1/2} \right], \qquad z = (y - \mu) / \sigma

    Paper: Gneiting and Raftery, 2007.

    >>> round(crps_gaussian([0.0], [1.0], [0.0]), 4)
    0.2337
    """
    below = pit_gaussian(mean, scale, y)
    width = np.asarray(scale, np.float64)
    z = (np.asarray(y, np.float64) - np.asarray(mean, np.float64)) / width
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return float((width * (z * (2 * below - 1) + 2 * density - 1 / math.sqrt(math.pi))).mean())
