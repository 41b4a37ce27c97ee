"""Do two samples come from one distribution? Tests that hold their level, by a classifier and by kernel means."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError, mix
from wonderland.trust.arrays import finite
from wonderland.trust.scaling import fit_logistic

ROWS = 2000  # so many rows of each sample are used at most by tests that compare all pairs


@dataclass(frozen=True)
class TwoSample:
    """The statistic of a test and its p-value."""

    statistic: float
    p_value: float


def pair(old: Any, new: Any, *, least: int = 2) -> tuple[ndarray, ndarray]:
    """Two samples with the same columns. Shapes: (n,) or (n, c), (m,) or (m, c) -> (n, c), (m, c)."""
    a, b = finite("old", old), finite("new", new)
    a, b = (x[:, None] if x.ndim == 1 else x for x in (a, b))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise WonderlandError(f"`old` has shape {a.shape} and `new` {b.shape}: both need the same columns.")
    for name, x in (("old", a), ("new", b)):
        if len(x) < least:
            raise WonderlandError(f"`{name}` has {len(x)} rows: this test needs at least {least}.")
    return a, b


def _generator(seed: int, *numbers: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(mix(seed, *numbers)))


def _spread(a: ndarray, b: ndarray) -> tuple[ndarray, ndarray]:
    """Both samples with columns of mean 0 and deviation 1 over both; constant columns become 0."""
    both = np.concatenate([a, b])
    middle, wide = both.mean(0), both.std(0)
    wide = np.where(wide > 0, wide, 1)
    return (a - middle) / wide, (b - middle) / wide


def auc(negative: ndarray, positive: ndarray) -> float:
    """The chance that a positive scores above a negative, ties counted half. Shapes: (n,), (m,).

    >>> auc(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    0.875
    """
    ordered = np.sort(negative)
    below, upto = np.searchsorted(ordered, positive, "left"), np.searchsorted(ordered, positive, "right")
    return float((below + upto).mean() / (2 * len(negative)))


def classifier_test(old: Any, new: Any, *, ridge: float = 1.0, draws: int = 500, seed: int = 0) -> TwoSample:
    r"""A classifier learns to tell the samples apart on one half, and its ranking is tested on the other.

    The statistic is the area under the ROC curve of a logistic regression on columns and their squares; 0.5 means that
    the samples cannot be told apart. The p-value is that of a permutation of the held-out labels,
    :math:`(1 + \#\{\mathrm{AUC}_\pi \ge \mathrm{AUC}\}) / (1 + B)`, which holds its level for any sizes.

    Shapes: (n, c), (m, c). Paper: Lopez-Paz and Oquab, 2017.

    >>> generator = np.random.default_rng(0)
    >>> classifier_test(generator.normal(size=(100, 2)), generator.normal(1, 1, (100, 2))).p_value < 0.01
    True
    """
    a, b = pair(old, new, least=10)
    generator = _generator(seed, len(a), len(b))
    a, b = a[generator.permutation(len(a))], b[generator.permutation(len(b))]
    half_a, half_b = len(a) // 2, len(b) // 2
    train = np.concatenate([a[:half_a], b[:half_b]])
    test = np.concatenate([a[half_a:], b[half_b:]])
    middle, wide = train.mean(0), train.std(0)
    wide = np.where(wide > 0, wide, 1)

    def features(x: ndarray) -> ndarray:
        z = np.clip((x - middle) / wide, -10, 10)
        return np.concatenate([z, z**2, np.ones((len(z), 1))], 1)

    label = np.r_[np.zeros(half_a), np.ones(half_b)]
    scores = features(test) @ fit_logistic(features(train), label, ridge=ridge)
    fresh = len(b) - half_b
    ranks = _midranks(scores)
    order = generator.permuted(np.tile(np.r_[np.zeros(len(a) - half_a), np.ones(fresh)], (draws, 1)), axis=1)
    sums, own = order @ ranks, ranks[len(a) - half_a :].sum()
    p = (1 + np.sum(sums >= own - 1e-9)) / (1 + draws)
    return TwoSample((own - fresh * (fresh + 1) / 2) / (fresh * (len(a) - half_a)), float(p))


def _midranks(x: ndarray) -> ndarray:
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    end = np.cumsum(count)
    return (end - (count - 1) / 2)[place]


def mmd_test(old: Any, new: Any, *, draws: int = 300, seed: int = 0) -> TwoSample:
    r"""The distance of the kernel means of two samples, tested by permutation.

    .. math:: \mathrm{MMD}^2 = \frac{1}{n (n - 1)} \sum_{i \ne j} k(x_i, x_j) + \frac{1}{m (m - 1)} \sum_{i \ne j} k(y_i, y_j)
              - \frac{2}{n m} \sum_{i, j} k(x_i, y_j)

    with a Gaussian kernel whose width is the median distance, on standardised columns; at most 2,000 rows of each sample.
    Zero for one distribution, on average; above for any other. Shapes: (n, c), (m, c). Paper: Gretton et al., 2012.

    >>> generator = np.random.default_rng(0)
    >>> mmd_test(generator.normal(size=(60, 2)), generator.normal(1, 1, (60, 2))).p_value < 0.01
    True
    """
    a, b = pair(old, new, least=3)
    generator = _generator(seed, len(a), len(b), 1)
    a, b = a[generator.permutation(len(a))[:ROWS]], b[generator.permutation(len(b))[:ROWS]]
    z = np.concatenate(_spread(a, b))
    squares = (z**2).sum(1)
    distance = np.maximum(squares[:, None] + squares - 2 * z @ z.T, 0)
    typical = np.median(distance[np.triu_indices(len(z), 1)])
    kernel = np.exp(-distance / (typical if typical > 0 else 1))
    np.fill_diagonal(kernel, 0)
    n, m = len(a), len(b)
    first = np.r_[np.ones(n), np.zeros(m)]
    labels = np.concatenate([first[None], generator.permuted(np.tile(first, (draws, 1)), axis=1)])
    toward = labels @ kernel
    within_a = (toward * labels).sum(1)
    across = (toward * (1 - labels)).sum(1)
    within_b = kernel.sum() - within_a - 2 * across
    values = within_a / (n * (n - 1)) + within_b / (m * (m - 1)) - 2 * across / (n * m)
    p = (1 + np.sum(values[1:] >= values[0] - 1e-12)) / (1 + draws)
    return TwoSample(float(values[0]), float(p))


def density_ratio(old: Any, new: Any, at: Any, *, ridge: float = 1.0, largest: float = 50.0) -> ndarray:
    r"""How much more often a row comes among the new rows than among the old: weights for learning under covariate shift.

    .. math:: w(x) = \frac{p_{new}(x)}{p_{old}(x)} \approx \frac{n}{m} \cdot \frac{\hat p(\text{new} | x)}{\hat p(\text{old} | x)}

    from a logistic regression on columns and their squares. Weights above `largest` are cut, and the mean over old rows is
    brought to 1. Shapes: old (n, c), new (m, c), at (k, c) -> (k,). Book: D2L 4.7.3.

    >>> generator = np.random.default_rng(0)
    >>> old, new = generator.normal(size=(5000, 1)), generator.normal(1, 1, (5000, 1))
    >>> bool(abs(density_ratio(old, new, [[0.5]])[0] - 1) < 0.1)
    True
    """
    a, b = pair(old, new, least=5)
    rows = finite("at", at)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.shape[1] != a.shape[1]:
        raise WonderlandError(f"`at` has {rows.shape[1]} columns where `old` has {a.shape[1]}.")
    both = np.concatenate([a, b])
    middle, wide = both.mean(0), both.std(0)
    wide = np.where(wide > 0, wide, 1)

    def features(x: ndarray) -> ndarray:
        z = np.clip((x - middle) / wide, -10, 10)
        return np.concatenate([z, z**2, np.ones((len(z), 1))], 1)

    weights = fit_logistic(features(both), np.r_[np.zeros(len(a)), np.ones(len(b))], ridge=ridge)

    def ratio(x: ndarray) -> ndarray:
        return np.minimum(np.exp(np.clip(features(x) @ weights, -50, 50)) * len(a) / len(b), largest)

    return ratio(rows) / ratio(a).mean()
