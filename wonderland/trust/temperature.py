"""Temperature scaling: one number that makes a classifier as sure as it is right."""

import numpy as np
from numpy import ndarray


def log_softmax(logits: ndarray) -> ndarray:
    """Log-probabilities over the last axis, in float64."""
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def fit_temperature(
    logits: ndarray, y: ndarray, *, low: float = 0.05, high: float = 20.0, weights: ndarray | None = None
) -> float:
    r"""The T that minimises the log loss of softmax(logits / T), with one imagined mistake among the n rows.

    .. math:: T^* = \arg\min_T -\frac{1}{n} \sum_i \sum_k t_{ik} \log \mathrm{softmax}(z_i / T)_k

    The targets t give the true class n / (n + 1) and share the rest among the others: without that, rows that are all
    right would call for T = 0, and a certainty that so few rows cannot warrant. The loss is convex in 1 / T, so bisection
    on its derivative finds the minimum. The order of classes never changes. `weights` (n,) weight the rows of the mean.
    Book: Alice 4 (calibration). Papers: Platt, 1999; Guo et al., 2017.

    >>> logits = np.log(np.array([[0.8, 0.2]] * 10_000))
    >>> y = np.array([0] * 8_000 + [1] * 2_000)
    >>> round(fit_temperature(3 * logits, y), 2)
    3.0
    """
    logits = np.asarray(logits, np.float64)
    rows, classes = logits.shape
    doubt = 1 / (rows + 1)
    chosen = logits[np.arange(rows), y]
    wanted = (1 - doubt) * chosen + doubt * (logits.sum(1) - chosen) / max(1, classes - 1)

    def slope(inverse: float) -> float:
        probabilities = np.exp(log_softmax(inverse * logits))
        return float(np.average((probabilities * logits).sum(1) - wanted, weights=weights))

    left, right = 1 / high, 1 / low
    for _ in range(60):
        middle = (left * right) ** 0.5
        left, right = (middle, right) if slope(middle) < 0 else (left, middle)
    return 1 / (left * right) ** 0.5
