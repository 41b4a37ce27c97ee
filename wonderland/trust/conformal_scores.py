"""How badly each class fits: the scores that sets of classes are made from."""

from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import uniform
from wonderland.trust.arrays import class_probabilities, finite, same_rows


def lac_scores(probabilities: Any) -> ndarray:
    """1 - p: the smallest sets on average. Shapes: (n, c) -> (n, c). Paper: Sadinle et al., 2019.

    >>> lac_scores([[0.75, 0.25]])
    array([[0.25, 0.75]])
    """
    return 1 - class_probabilities(probabilities)


def raps_scores(
    probabilities: Any, *, penalty: float = 0.0, rank: int = 0, u: Any = None, seed: int = 0, epoch: int = 0
) -> ndarray:
    r"""The mass of all classes at least as probable, less a random share of the class itself, plus a price for rank.

    .. math:: s_k = \sum_{j : p_j > p_k} p_j + u\, p_k + \lambda \max(0, \mathrm{rank}_k - r)

    Without the price (\lambda = 0) this is APS: sets grow where the classifier is unsure. The price keeps them from long
    tails. `u` is uniform and makes the coverage exact; u = 1 leaves chance out and covers too much. It is drawn from
    (seed, epoch, row): calibration and prediction use different epochs.

    Shapes: (n, c), u (n,) -> (n, c). Papers: Romano et al., 2020; Angelopoulos et al., 2021.

    >>> raps_scores([[0.5, 0.25, 0.25]], u=[1.0])
    array([[0.5 , 0.75, 1.  ]])
    """
    array = class_probabilities(probabilities)
    random = uniform(seed, epoch, np.arange(len(array)), 1)[:, 0] if u is None else finite("u", u, 1)
    same_rows("probabilities", array, "u", random)
    order = np.argsort(-array, axis=1, kind="stable")
    falling = np.take_along_axis(array, order, 1)
    before = np.cumsum(falling, 1) - falling
    ranks = np.arange(1, array.shape[1] + 1)
    scores = before + random[:, None] * falling + penalty * np.maximum(0, ranks - rank)
    out = np.empty_like(scores)
    np.put_along_axis(out, order, scores, 1)
    return out


def aps_scores(probabilities: Any, *, u: Any = None, seed: int = 0, epoch: int = 0) -> ndarray:
    """Adaptive prediction sets: `raps_scores` without a price. Shapes: (n, c) -> (n, c).

    >>> aps_scores([[0.5, 0.25, 0.25]], u=[0.0])
    array([[0.  , 0.5 , 0.75]])
    """
    return raps_scores(probabilities, u=u, seed=seed, epoch=epoch)
