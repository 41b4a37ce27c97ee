"""Label shift: the classes come in other shares than before. Estimated without new labels, and corrected."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.arrays import class_labels, class_probabilities, same_rows


@dataclass(frozen=True)
class LabelShift:
    """Shares of classes before and now, and the weight of each class, now by before. Shapes: (c,)."""

    old: ndarray
    new: ndarray
    weights: ndarray

    def correct(self, probabilities: Any) -> ndarray:
        """Probabilities under the new shares: :math:`p_k w_k`, normalised. Shapes: (n, c) -> (n, c)."""
        moved = class_probabilities(probabilities) * self.weights
        total = moved.sum(1, keepdims=True)
        return np.where(total > 0, moved / np.where(total > 0, total, 1), self.new)


@dataclass(frozen=True)
class LabelScores:
    r"""Calibration scores of rows whose classes come in other shares now: a row of class k has the weight :math:`w_k`.

    .. math:: p(x, k) = \frac{w_k + \sum_{i : s_i \ge s(x, k)} w_{y_i}}{w_k + \sum_i w_{y_i}}

    Shapes: scores (n,), y (n,), weights (c,). Paper: Podkopaev and Ramdas, 2021.

    >>> scores = LabelScores(np.arange(99.0), np.zeros(99, int), np.array([1.0, 0.5]))
    >>> scores.p_values(np.array([[98.0, -1.0]])).round(3)
    array([[0.02, 1.  ]])
    """

    scores: ndarray
    y: ndarray
    weights: ndarray

    def p_values(self, candidates: ndarray) -> ndarray:
        """The p-value of each class. Shapes: (n, c) -> (n, c)."""
        order = np.argsort(self.scores, kind="stable")
        mass = self.weights[self.y[order]]
        above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
        worse = above[np.searchsorted(self.scores[order], candidates, side="left")]
        return (self.weights + worse) / np.maximum(self.weights + above[0], 1e-300)


def _inputs(probabilities: Any, y: Any, new_probabilities: Any) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    array = class_probabilities(probabilities)
    labels = class_labels(y, array.shape[1])
    same_rows("probabilities", array, "y", labels)
    fresh = class_probabilities(new_probabilities, name="new_probabilities")
    if fresh.shape[1] != array.shape[1]:
        raise WonderlandError(
            f"`new_probabilities` has {fresh.shape[1]} classes where `probabilities` has {array.shape[1]}."
        )
    shares = np.bincount(labels, minlength=array.shape[1]) / len(labels)
    if (shares == 0).any():
        raise WonderlandError(
            f"`y` has no row of class {int(np.argmax(shares == 0))}: its share cannot be estimated without labelled rows of it."
        )
    return array, labels, fresh, shares


def black_box_shift(probabilities: Any, y: Any, new_probabilities: Any, *, soft: bool = True) -> LabelShift:
    r"""Shares of classes from the confusion matrix of labelled rows and the mean prediction on new ones.

    .. math:: C w = \mu, \qquad C_{jk} = \frac1n \sum_{i : y_i = k} \hat p_j(x_i), \quad \mu_j = \frac1m \sum_i \hat p_j(x'_i)

    solved for the ratio of shares :math:`w = q / p` under :math:`w \ge 0` and shares that sum to 1. Any classifier will do,
    wrong probabilities included, as long as its confusion matrix can be inverted. `soft=False` counts predicted classes.

    Shapes: probabilities (n, c), y (n,) of rows the classifier did not learn from; new_probabilities (m, c).
    Book: D2L 4.7.3. Paper: Lipton et al., 2018.

    >>> p = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> found = black_box_shift(p[[0] * 50 + [1] * 50], [0] * 50 + [1] * 50, p[[0] * 80 + [1] * 20])
    >>> found.new.round(3)
    array([0.8, 0.2])
    """
    array, labels, fresh, shares = _inputs(probabilities, y, new_probabilities)
    classes = array.shape[1]
    if not soft:
        array, fresh = np.eye(classes)[array.argmax(1)], np.eye(classes)[fresh.argmax(1)]
    joint = array.T @ np.eye(classes)[labels] / len(labels)  # (predicted, true)
    condition = np.linalg.cond(joint / shares)
    if not np.isfinite(condition) or condition > 1e8:
        raise WonderlandError(
            "The classifier's confusion matrix cannot be inverted: it does not tell some classes apart, so their shares "
            "cannot be estimated."
        )
    new = _simplex_least_squares(joint / shares, fresh.mean(0))
    return LabelShift(shares, new, new / shares)


def _simplex_least_squares(A: ndarray, b: ndarray) -> ndarray:
    """The point of the simplex whose image is nearest to b. Shapes: (c, c), (c,) -> (c,)."""
    exact = np.linalg.solve(A, b)
    if exact.min() >= 0:
        return exact / exact.sum()
    gram, toward = A.T @ A, A.T @ b
    step = 1 / np.linalg.norm(gram, 2)
    here = np.full(len(b), 1 / len(b))
    ahead, pace = here, 1.0
    for _ in range(5000):
        there = _project(ahead - step * (gram @ ahead - toward))
        next_pace = (1 + np.sqrt(1 + 4 * pace * pace)) / 2
        ahead = there + (pace - 1) / next_pace * (there - here)
        if np.abs(there - here).max() < 1e-14:
            break
        here, pace = there, next_pace
    return here


def _project(v: ndarray) -> ndarray:
    """The nearest point of the simplex."""
    falling = np.sort(v)[::-1]
    sums = (np.cumsum(falling) - 1) / np.arange(1, len(v) + 1)
    last = np.flatnonzero(falling > sums)[-1]
    return np.maximum(v - sums[last], 0)


def em_shift(probabilities: Any, y: Any, new_probabilities: Any, *, iterations: int = 10_000) -> LabelShift:
    r"""Shares of classes with the largest likelihood of the new rows, by expectation and maximisation.

    .. math:: q_k \leftarrow \frac1m \sum_i \frac{\hat p_k(x_i)\, q_k / p_k}{\sum_j \hat p_j(x_i)\, q_j / p_j}

    Better than the black-box estimate when probabilities are calibrated, worse when they are not: calibrate first, with a
    shift for each class (`vector_scaling`). Shapes: probabilities (n, c), y (n,), new_probabilities (m, c).
    Papers: Saerens et al., 2002; Alexandari et al., 2020.

    >>> p = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> old = p[[0] * 50 + [1] * 50], [0] * 45 + [1] * 5 + [0] * 5 + [1] * 45
    >>> em_shift(*old, p[[0] * 74 + [1] * 26]).new.round(3)
    array([0.8, 0.2])
    """
    _, _, fresh, shares = _inputs(probabilities, y, new_probabilities)
    now = shares.copy()
    for _ in range(iterations):
        moved = fresh * (now / shares)
        total = moved.sum(1, keepdims=True)
        estimate = np.where(total > 0, moved / np.where(total > 0, total, 1), now).mean(0)
        if np.abs(estimate - now).max() < 1e-12:
            break
        now = estimate
    return LabelShift(shares, now, now / shares)
