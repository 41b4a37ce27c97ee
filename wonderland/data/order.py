"""The order of training rows: easy ones first (curriculum), or important ones more often (importance sampling)."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError, uniform


def curriculum(difficulty: Any, *, epoch: int, epochs: int, start: float = 0.2, power: float = 1.0) -> ndarray:
    r"""The rows of an epoch: the easiest share of all, which grows until nothing is left out.

    .. math:: s_e = s_0 + (1 - s_0) \Bigl(\frac{e}{E - 1}\Bigr)^{p}, \qquad
        \text{rows } \{ i : \operatorname{rank}(d_i) < \lceil s_e n \rceil \}

    Difficulty d is any number for each row: a length, a loss, a noise level; ties are broken by row number. Pass the
    result to `Batches(rows=...)`. Shapes: difficulty (n,) -> row numbers, rising. Paper: Bengio et al., 2009.

    >>> [curriculum([3.0, 1.0, 2.0, 9.0], epoch=e, epochs=3, start=0.25).tolist() for e in range(3)]
    [[1], [0, 1, 2], [0, 1, 2, 3]]
    """
    values = _numbers("curriculum", "difficulty", difficulty)
    if not 0 < start <= 1:
        raise WonderlandError(f"curriculum takes a start above 0 and at most 1, not {start!r}.")
    if not 0 < power < math.inf:
        raise WonderlandError(f"curriculum takes a power above 0, not {power!r}.")
    if epochs < 1 or epoch < 0:
        raise WonderlandError(f"curriculum takes an epoch of at least 0 of at least 1 epochs, not {epoch} of {epochs}.")
    done = min(1.0, epoch / (epochs - 1)) if epochs > 1 else 1.0
    share = start + (1 - start) * done**power
    # Rounding may leave the product slightly above a whole number, which must not add a row.
    count = max(1, math.ceil(share * len(values) - 1e-9))
    return np.sort(np.argsort(values, kind="stable")[:count])


class Importance(NamedTuple):
    """Rows (b,) drawn with replacement, and the weight (b,) of each that makes a mean of losses unbiased."""

    rows: ndarray
    weight: ndarray


def importance_sample(importance: Any, size: int, *, seed: int = 0, epoch: int = 0, position: int = 0) -> Importance:
    r"""Rows drawn in proportion to their importance, with weights that undo the preference.

    .. math:: P(i) = \frac{q_i}{\sum_j q_j}, \qquad w_i = \frac{1}{n P(i)}, \qquad
        \mathrm{E}\Bigl[\frac1b \sum_k w_{i_k} l_{i_k}\Bigr] = \frac1n \sum_i l_i

    The variance is smallest when importance is the norm of a row's gradient; another importance adds variance, never bias. Multiply
    a loss with `reduction="none"` by the weights and take the plain mean: a weighted mean would divide by their sum.
    A row of importance 0 is never drawn. Shapes: importance (n,) -> rows (b,), weight (b,).

    >>> drawn = importance_sample([0.0, 1.0, 0.0], 2)
    >>> drawn.rows.tolist(), drawn.weight.round(4).tolist()
    ([1, 1], [0.3333, 0.3333])
    """
    values = _numbers("importance_sample", "importance", importance)
    if values.min() < 0 or not values.sum() > 0:
        raise WonderlandError("importance_sample takes an importance of at least 0 for each row, and above 0 for some.")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise WonderlandError(f"importance_sample takes a size of at least 1 row, not {size!r}.")
    ends = np.cumsum(values)
    draws = uniform(seed, epoch, np.arange(position * size, (position + 1) * size), 1)[:, 0]
    rows = np.minimum(np.searchsorted(ends, draws * ends[-1], side="right"), np.flatnonzero(values)[-1])
    return Importance(rows, ends[-1] / (len(values) * values[rows]))


def _numbers(name: str, argument: str, value: Any) -> ndarray:
    try:
        values = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise WonderlandError(f"{name} takes numbers as its {argument}, one for each row.") from None
    if values.ndim != 1 or not len(values):
        raise WonderlandError(f"{name} takes one number for each row as its {argument}, not shape {values.shape}.")
    if not np.isfinite(values).all():
        where = int(np.flatnonzero(~np.isfinite(values))[0])
        raise WonderlandError(f"{name} got a {argument} that is {values[where]:g} at row {where}.")
    return values
