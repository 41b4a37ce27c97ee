"""Bootstrap: how far a measure would move had other rows been drawn."""

from collections.abc import Callable
from dataclasses import dataclass
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

    with :math:`\hat F` the distribution of the measure over draws. "basic" mirrors it about the measured value,
    :math:`[2 \hat\theta - \hat F^{-1}(\tfrac{1 + \ell}{2}), 2 \hat\theta - \hat F^{-1}(\tfrac{1 - \ell}{2})]`: use it for
    measures that resampling raises, such as calibration errors. An end below zero then says that these rows cannot tell
    the error from none.

    Shapes: each array has rows first. Papers: Efron, 1979; Davison and Hinkley, 1997.

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
    if method not in ("percentile", "basic"):
        raise WonderlandError(f"`method` is 'percentile' or 'basic', not {method!r}.")
    value = float(measure(*columns))
    generator = np.random.Generator(np.random.Philox(mix(seed, rows, draws)))
    values = np.empty(draws)
    for draw in range(draws):
        chosen = generator.integers(0, rows, rows)
        values[draw] = measure(*(column[chosen] for column in columns))
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2]).tolist()
    if method == "basic":
        low, high = 2 * value - high, 2 * value - low
    return Interval(value, low, high, level)
