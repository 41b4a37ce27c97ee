"""Metrics on numpy arrays: labels first, predictions second, one number back."""

import numpy as np
from numpy import ndarray


def accuracy(y: ndarray, predicted: ndarray) -> float:
    """Share of rows with the right class.

    >>> accuracy(np.array([0, 1, 1]), np.array([0, 1, 0]))
    0.6666666666666666
    """
    return float(np.mean(y == predicted))


def balanced_accuracy(y: ndarray, predicted: ndarray) -> float:
    """Mean over the classes that occur of the share found: every class counts alike, however rare.

    >>> balanced_accuracy(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))
    0.5
    """
    return float(np.mean([np.mean(predicted[y == label] == label) for label in np.unique(y)]))


def log_loss(y: ndarray, log_probabilities: ndarray) -> float:
    """Mean of -log p(true class), in nats. Shapes: y (n,), log-probabilities (n, c)."""
    return float(-np.mean(log_probabilities[np.arange(len(y)), y]))


def auroc(y: ndarray, scores: ndarray) -> float | None:
    r"""Probability that a random positive scores above a random negative, ties counted half.

    .. math:: \frac{\sum_{i: y_i = 1} r_i - n_1 (n_1 + 1) / 2}{n_1 n_0}, \qquad r_i \text{ the rank of score } i

    None when one of the two is absent.

    >>> auroc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    positive = np.asarray(y, bool)
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return None
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def macro_auroc(y: ndarray, probabilities: ndarray) -> float | None:
    """Mean over classes of each class against the rest; two classes give the usual binary number."""
    if probabilities.shape[1] == 2:
        return auroc(y == 1, probabilities[:, 1])
    found = [auroc(y == label, probabilities[:, label]) for label in range(probabilities.shape[1])]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else None


def mae(y: ndarray, predicted: ndarray) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(y - predicted)))


def rmse(y: ndarray, predicted: ndarray) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean(np.square(y - predicted))))


def r2(y: ndarray, predicted: ndarray) -> float | None:
    """Share of the variance explained; None where the target does not vary."""
    total = float(np.sum(np.square(y - np.mean(y))))
    return 1 - float(np.sum(np.square(y - predicted))) / total if total > 0 else None


def confusion(y: ndarray, predicted: ndarray, classes: int) -> ndarray:
    """Counts (true class, predicted class).

    >>> confusion(np.array([0, 1, 1]), np.array([0, 1, 0]), 2).tolist()
    [[1, 0], [1, 1]]
    """
    return np.bincount(y * classes + predicted, minlength=classes * classes).reshape(classes, classes)
