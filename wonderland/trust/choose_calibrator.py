"""Which calibrator? The one with the smallest log loss on rows it was not fitted on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError, nearest, permutation
from wonderland.trust.arrays import class_labels, class_logits, same_rows
from wonderland.trust.scaling import CALIBRATORS, Calibrator


@dataclass(frozen=True)
class Chosen:
    """The calibrator that was chosen, fitted on all rows, and the cross-validated log loss of every candidate."""

    calibrator: Calibrator
    losses: dict[str, float]


def log_loss(probabilities: ndarray, y: ndarray) -> float:
    """Mean negative log-probability of what happened, with probabilities kept above 1e-12. Shapes: (n, c), (n,).

    >>> round(log_loss(np.array([[0.5, 0.5]]), np.array([1])), 4)
    0.6931
    """
    return float(-np.log(np.maximum(probabilities[np.arange(len(y)), y], 1e-12)).mean())


def choose_calibrator(
    logits: Any, y: Any, *, methods: Sequence[str] = tuple(CALIBRATORS), folds: int = 5, seed: int = 0
) -> Chosen:
    """Fit each method on all folds but one, measure its log loss on that one, and keep the best on average.

    Folds are drawn class by class. With fewer than two rows a fold, the answer is temperature scaling, which few rows
    cannot mislead. Shapes: logits (n, c), y (n,).

    >>> generator = np.random.default_rng(0)
    >>> logits = generator.normal(size=(500, 3))
    >>> y = np.array([generator.choice(3, p=np.exp(row) / np.exp(row).sum()) for row in logits])
    >>> chosen = choose_calibrator(4 * logits, y, methods=("none", "temperature"))
    >>> chosen.calibrator.method
    'temperature'
    """
    array = class_logits(logits)
    labels = class_labels(y, array.shape[1])
    same_rows("logits", array, "y", labels)
    for method in methods:
        if method not in CALIBRATORS:
            raise WonderlandError(
                f"There is no calibrator {method!r}; there are {', '.join(CALIBRATORS)}.{nearest(method, CALIBRATORS)}"
            )
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise WonderlandError(f"`folds` has to be a whole number of at least 2, not {folds}.")
    if len(labels) < 2 * folds:
        return Chosen(CALIBRATORS["temperature"](array, labels), {})
    order = permutation(seed, 0, len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), int)
    fold[order] = np.arange(len(labels)) % folds
    losses = {}
    for method in methods:
        total = 0.0
        for index in range(folds):
            inside, outside = fold != index, fold == index
            calibrator = CALIBRATORS[method](array[inside], labels[inside])
            total += log_loss(calibrator(array[outside]), labels[outside]) * outside.sum()
        losses[method] = float(total / len(labels))
    best = min(losses, key=lambda method: losses[method])
    return Chosen(CALIBRATORS[best](array, labels), losses)
