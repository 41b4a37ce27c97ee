"""Bootstrap: how far a measure would move had other rows been drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, mix
from wonderland.trust.arrays import same_rows
from wonderland.trust.conformal import check_level


@dataclass(frozen=True)
class Interval:
    """A measured value with the ends of its confidence interval."""

    value: float
    low: float
    high: float
    level: float


def bootstrap(
    measure: Callable[..., float],
    *arrays: Any,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    method: str = "percentile",
) -> Interval:
    r"""The interval of a measure of rows, from resampling the rows with replacement.

    .. math:: [\hat F^{-1}(\tfrac{1 - \ell}{2}), \hat F^{-1}(\tfrac{1 + \ell}{2})]

    with :math:`\hat F` the distribution of the measure over draws. "bias_corrected" moves both shares by twice
    :math:`z_0 = \Phi^{-1}(\hat F(\hat\theta))`: use it for measures that resampling raises, such as calibration errors.

    Shapes: each array has rows first. Paper: Efron, 1987.

    >>> found = bootstrap(lambda x: float(x.mean()), np.arange(100.0))
    >>> found.low < 49.5 < found.high
    True
    """
    check_level(level)
    columns = [np.asarray(array) for array in arrays]
    if not columns:
        raise WonderlandError("`bootstrap` needs at least one array of rows.")
    for index, column in enumerate(columns[1:], 2):
        same_rows("array 1", columns[0], f"array {index}", column)
    rows = len(columns[0])
    if rows < 2:
        raise WonderlandError(f"A bootstrap interval needs two rows or more, not {rows}.")
    if method not in ("percentile", "bias_corrected"):
        raise WonderlandError(f"`method` is 'percentile' or 'bias_corrected', not {method!r}.")
    value = float(measure(*columns))
    generator = np.random.Generator(np.random.Philox(mix(seed, rows, draws)))
    found = np.empty(draws)
    for draw in range(draws):
        chosen = generator.integers(0, rows, rows)
        found[draw] = measure(*(column[chosen] for column in columns))
    shares = [(1 - level) / 2, (1 + level) / 2]
    if method == "bias_corrected":
        below = (np.sum(found < value) + 0.5 * np.sum(found == value)) / draws
        shift = 2 * NormalDist().inv_cdf(min(max(below, 0.5 / draws), 1 - 0.5 / draws))
        shares = [NormalDist().cdf(shift + NormalDist().inv_cdf(share)) for share in shares]
    low, high = np.quantile(found, shares)
    return Interval(value, float(low), float(high), level)
