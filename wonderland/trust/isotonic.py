"""Isotonic regression: the best rising staircase through points, by pooling neighbours that fall."""

from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.arrays import finite, same_rows


def isotonic_regression(x: Any, y: Any, weights: Any = None) -> tuple[ndarray, ndarray]:
    r"""The non-decreasing values closest to y in squared error, at the distinct x.

    .. math:: \min_{f_1 \le f_2 \le \dots} \sum_i w_i (y_i - f(x_i))^2

    Pool adjacent violators: a block that lies below the one before it is averaged with it, in one pass over the sorted
    points. Between the knots the fit is linear (`np.interp`), beyond them constant.

    Shapes: x (n,), y (n,) -> knots (k,), values (k,). Papers: Ayer et al., 1955; Zadrozny and Elkan, 2002.

    >>> isotonic_regression([1, 2, 3], [1.0, 3.0, 2.0])
    (array([1., 2., 3.]), array([1. , 2.5, 2.5]))
    """
    places, values = finite("x", x, 1), finite("y", y, 1)
    same_rows("x", places, "y", values)
    mass = np.ones_like(values) if weights is None else finite("weights", weights, 1)
    same_rows("x", places, "weights", mass)
    if mass.min() < 0 or mass.sum() == 0:
        raise WonderlandError("`weights` have to be 0 or more, and not all 0.")
    kept = mass > 0
    knots, group = np.unique(places[kept], return_inverse=True)
    heavy = np.bincount(group, mass[kept])
    level = np.bincount(group, mass[kept] * values[kept]) / heavy
    means: list[float] = []
    sizes: list[float] = []
    lengths: list[int] = []
    for mean, size in zip(level.tolist(), heavy.tolist(), strict=True):
        length = 1
        while means and means[-1] >= mean:
            other, before = means.pop(), sizes.pop()
            mean = (other * before + mean * size) / (before + size)
            size += before
            length += lengths.pop()
        means.append(mean)
        sizes.append(size)
        lengths.append(length)
    return knots, np.repeat(means, lengths)
