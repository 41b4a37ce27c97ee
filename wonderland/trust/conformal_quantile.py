"""The quantile of conformal prediction: how badly an answer may fit and still belong to the set."""

import math
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.arrays import finite, same_rows
from wonderland.trust.conformal import check_level


def conformal_quantile(scores: Any, level: float) -> float:
    r"""The :math:`\lceil (n + 1) \ell \rceil`-th smallest score; infinite when there are not so many.

    A new score from the same distribution is at most this large with a chance between :math:`\ell` and
    :math:`\ell + 1 / (n + 1)`. Shapes: (n,). Papers: Papadopoulos et al., 2002; Vovk et al., 2005.

    >>> conformal_quantile(np.arange(1, 100), 0.9)
    90.0
    >>> conformal_quantile([1.0, 2.0], 0.9)
    inf
    """
    array = np.asarray(scores, np.float64)
    rank = math.ceil(check_level(level) * (len(array) + 1) - 1e-9)
    if rank > len(array):
        return math.inf
    return float(np.partition(array, rank - 1)[rank - 1])


def weighted_quantile(scores: Any, weights: Any, new_weights: Any, level: float) -> ndarray:
    r"""The quantile of calibration scores under covariate shift, one for each new row.

    .. math::
        q(x) = \inf\Bigl\{ s : \sum_i \tilde w_i(x) [s_i \le s] \ge \ell \Bigr\}, \qquad
        \tilde w_i(x) = \frac{w(x_i)}{\sum_j w(x_j) + w(x)}

    with :math:`w` the ratio of the densities of new and old rows (`density_ratio`); the mass :math:`w(x)` of the new row
    itself sits at infinity. With equal weights this is `conformal_quantile`.

    Shapes: scores (n,), weights (n,), new_weights (m,) -> (m,). Paper: Tibshirani et al., 2019.

    >>> weighted_quantile(np.arange(1, 100), np.ones(99), [1.0], 0.9)
    array([90.])
    """
    check_level(level)
    array, mass, new = finite("scores", scores, 1), finite("weights", weights, 1), finite("new_weights", new_weights, 1)
    same_rows("scores", array, "weights", mass)
    if mass.min() < 0 or new.min() < 0:
        raise WonderlandError("Weights of rows have to be 0 or more.")
    order = np.argsort(array, kind="stable")
    sums = np.cumsum(mass[order])
    needed = level * (sums[-1] + new)
    # A rank that is met exactly must not be missed by rounding.
    place = np.searchsorted(sums, needed * (1 - 1e-12))
    return np.where(place < len(array), array[order][np.minimum(place, len(array) - 1)], np.inf)
