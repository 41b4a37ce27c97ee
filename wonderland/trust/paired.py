"""The difference of two models measured on the same rows, with a confidence interval."""

from dataclasses import dataclass

import numpy as np
from numpy import ndarray

NORMAL_95 = 1.959964


@dataclass(frozen=True)
class Difference:
    """A difference of means, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def paired_difference(first: ndarray, second: ndarray) -> Difference:
    r"""The mean of first minus second, measured on the same rows (n,).

    .. math::
        \bar d \pm 1.96 \, s_d / \sqrt n, \qquad d_i = a_i - b_i

    >>> found = paired_difference(np.array([1.0, 2, 3, 4]), np.array([1.0, 1, 2, 4]))
    >>> round(found.value, 3), round(found.low, 3)
    (0.5, -0.066)
    """
    gaps = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    error = NORMAL_95 * float(gaps.std(ddof=1)) / len(gaps) ** 0.5 if len(gaps) > 1 else float("inf")
    return Difference(float(gaps.mean()), float(gaps.mean()) - error, float(gaps.mean()) + error)


def paired_rmse_difference(first: ndarray, second: ndarray) -> Difference:
    r"""The difference of two root mean squared errors, from the errors of the same rows (n,), by the delta method.

    .. math::
        \sqrt{\overline{a^2}} - \sqrt{\overline{b^2}}, \qquad
        u_i = \frac{a_i^2}{2 \sqrt{\overline{a^2}}} - \frac{b_i^2}{2 \sqrt{\overline{b^2}}}

    >>> errors = np.array([1.0, -1, 2, -2])
    >>> paired_rmse_difference(errors, errors).value
    0.0
    """
    squares = [np.square(np.asarray(errors, np.float64)) for errors in (first, second)]
    roots = [float(values.mean()) ** 0.5 for values in squares]
    parts = [values / (2 * root) if root > 0 else np.zeros(len(values))
             for values, root in zip(squares, roots, strict=True)]  # fmt: skip
    around = paired_difference(*parts)
    value = roots[0] - roots[1]
    return Difference(value, value + around.low - around.value, value + around.high - around.value)
