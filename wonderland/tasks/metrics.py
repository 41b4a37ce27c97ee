"""Metrics on arrays and lists: metric(labels, predictions) -> number."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError

Values = ndarray | Sequence[Any]


def accuracy(y: Values, predicted: Values) -> float:
    """Share of rows with the correct class.

    >>> accuracy(np.array([0, 1, 1]), np.array([0, 1, 0]))
    0.6666666666666666
    """
    y, predicted = _same_shape(y, predicted, "predicted")
    return float(np.mean(y == predicted))


def balanced_accuracy(y: Values, predicted: Values) -> float:
    """Mean recall over the classes that occur.

    >>> balanced_accuracy(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))
    0.5
    """
    y, predicted = _same_shape(y, predicted, "predicted")
    return float(np.mean([np.mean(predicted[y == label] == label) for label in np.unique(y)]))


def log_loss(y: Values, log_probabilities: Values) -> float:
    """Mean of -log p(true class), in nats. Shapes: y (n,), log-probabilities (n, c)."""
    y, log_probabilities = _labels(y, log_probabilities)
    return float(-np.mean(log_probabilities[np.arange(len(y)), y]))


def auroc(y: Values, scores: Values) -> float | None:
    r"""Probability that a random positive scores above a random negative, ties counted half.

    .. math:: \frac{\sum_{i: y_i = 1} r_i - n_1 (n_1 + 1) / 2}{n_1 n_0}, \qquad r_i \text{ the rank of score } i

    None without positives or without negatives.

    >>> auroc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    y, scores = _same_shape(y, scores, "scores")
    positive = np.asarray(y, bool)
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return None
    _, index, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[index]
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def macro_auroc(y: Values, probabilities: Values) -> float | None:
    """Mean over classes of each class against the rest; two classes give the usual binary number."""
    y, probabilities = _labels(y, probabilities)
    if probabilities.shape[1] == 2:
        return auroc(y == 1, probabilities[:, 1])
    values = [auroc(y == label, probabilities[:, label]) for label in range(probabilities.shape[1])]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def mae(y: Values, predicted: Values) -> float:
    """Mean absolute error."""
    y, predicted = _same_shape(y, predicted, "predicted")
    return float(np.mean(np.abs(y - predicted)))


def rmse(y: Values, predicted: Values) -> float:
    """Root mean squared error."""
    y, predicted = _same_shape(y, predicted, "predicted")
    return float(np.sqrt(np.mean(np.square(y - predicted))))


def r2(y: Values, predicted: Values) -> float | None:
    """Coefficient of determination; None where the target is constant."""
    y, predicted = _same_shape(y, predicted, "predicted")
    total = float(np.sum(np.square(y - np.mean(y))))
    return 1 - float(np.sum(np.square(y - predicted))) / total if total > 0 else None


def confusion(y: Values, predicted: Values, classes: int) -> ndarray:
    """Counts (true class, predicted class).

    >>> confusion(np.array([0, 1, 1]), np.array([0, 1, 0]), 2).tolist()
    [[1, 0], [1, 1]]
    """
    y, predicted = _same_shape(y, predicted, "predicted")
    for name, labels in (("y", y), ("predicted", predicted)):
        wrong = labels[(labels < 0) | (labels >= classes)]
        if len(wrong):
            raise WonderlandError(f"{name} has the label {wrong[0]}, and the classes are 0 to {classes - 1}.")
    return np.bincount(y * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def zero_one(y: Values, scores: Values) -> float:
    """Share of wrong signs, for classes -1 and +1; a score of 0 counts as wrong. Book: Alice 3.2.

    >>> zero_one(np.array([1, -1, 1]), np.array([0.3, 2.0, 0.0]))
    0.6666666666666666
    """
    y, scores = _same_shape(y, scores, "scores")
    return float(np.mean(np.sign(scores) != y))


def top_k_error(y: Values, scores: Values, k: int = 5) -> float:
    """Share of rows whose class is not among the k with the highest scores; of equal scores the lower class comes first.

    Shapes: y (n,), scores (n, c). Book: Alice 9.1.

    >>> top_k_error(np.array([2, 0]), np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]), k=2)
    1.0
    """
    y, scores = _labels(y, scores)
    if not 1 <= k <= scores.shape[1]:
        raise WonderlandError(f"top_k_error takes a k from 1 to the {scores.shape[1]} classes, not {k}.")
    true_scores = scores[np.arange(len(y)), y][:, None]
    lower_class = np.arange(scores.shape[1]) < np.asarray(y)[:, None]
    rank = ((scores > true_scores) | ((scores == true_scores) & lower_class)).sum(1)
    return float(np.mean(rank >= k))


def precision_recall_f1(y: Values, predicted: Values, positive: Any = 1) -> tuple[float, float, float]:
    r"""Precision, recall and their harmonic mean for one class against the rest; 0 where a denominator is 0.

    .. math:: P = \frac{TP}{TP + FP}, \qquad R = \frac{TP}{TP + FN}, \qquad F_1 = \frac{2 TP}{2 TP + FP + FN}

    >>> precision_recall_f1(np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0]))
    (0.5, 0.5, 0.5)
    """
    y, predicted = _same_shape(y, predicted, "predicted")
    actual, called = y == positive, predicted == positive
    hits, predicted_count, actual_count = int((actual & called).sum()), int(called.sum()), int(actual.sum())
    return (
        hits / predicted_count if predicted_count else 0.0,
        hits / actual_count if actual_count else 0.0,
        2 * hits / (predicted_count + actual_count) if predicted_count + actual_count else 0.0,
    )


def macro_f1(y: Values, predicted: Values) -> float:
    """Mean F1 over the classes that occur in labels or predictions.

    >>> macro_f1(np.array([0, 0, 1]), np.array([0, 0, 0]))
    0.4
    """
    classes = np.union1d(y, predicted)
    return float(np.mean([precision_recall_f1(y, predicted, label)[2] for label in classes]))


def average_precision(y: Values, scores: Values) -> float | None:
    r"""Average precision: the area under the precision-recall curve as a step function; equal scores are one step.

    .. math:: \sum_k (R_k - R_{k-1}) P_k

    None without a positive.

    >>> average_precision(np.array([1, 0, 1]), np.array([0.9, 0.8, 0.7]))
    0.8333333333333333
    """
    y, scores = _same_shape(y, scores, "scores")
    positive = np.asarray(y, bool)
    if not positive.any():
        return None
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(positive[order])
    last = np.append(np.diff(scores[order]) != 0, True)
    hits, rows = hits[last], np.flatnonzero(last) + 1
    return float(np.sum(np.diff(hits, prepend=0) / hits[-1] * hits / rows))


def brier(y: Values, probabilities: Values) -> float:
    """Brier score: squared error of probabilities (n, c) against one-hot labels, summed over classes, averaged over rows.

    >>> brier(np.array([0]), np.array([[0.5, 0.5]]))
    0.5
    """
    y, probabilities = _labels(y, probabilities)
    return float(np.mean(np.sum(np.square(probabilities - np.eye(probabilities.shape[1])[y]), 1)))


def perplexity(y: Values, log_probabilities: Values, mask: Values | None = None) -> float:
    r"""Perplexity: exp of the mean negative log-likelihood.

    .. math:: \exp\Bigl(-\frac1n \sum_t \log p(y_t)\Bigr)

    A uniform model has the size of its vocabulary, a perfect model 1. Shapes: y (...), log-probabilities (..., c), mask (...) True
    where a token is real. Book: D2L 9.3.

    >>> round(perplexity(np.array([0, 1]), np.log(np.full((2, 4), 0.25))), 12)
    4.0
    """
    unmasked = np.ones(np.shape(y), bool) if mask is None else np.asarray(mask, bool)
    if not unmasked.any():
        raise WonderlandError("perplexity got no unmasked token.")
    labels, rows = np.asarray(y)[unmasked], np.asarray(log_probabilities)[unmasked]
    labels, rows = _labels(labels, rows)
    return math.exp(log_loss(labels, rows))


def bleu(reference: Sequence[Any], predicted: Sequence[Any], longest: int = 4) -> float:
    r"""BLEU of one sentence: geometric mean of n-gram precisions times the brevity penalty.

    .. math:: \exp(\min(0, 1 - r / l)) \prod_{n=1}^{N} p_n^{1/N}

    Without smoothing: 0 if any n-gram order has no match. Paper: Papineni et al., 2002. See `d2l_bleu` for D2L's.

    >>> bleu("the cat is on the mat".split(), "the cat is on a mat".split())
    0.537284965911771
    """
    _check_reference(reference, "bleu")
    precisions = [_precision(reference, predicted, n) for n in range(1, longest + 1)]
    if not all(precisions):
        return 0.0
    return _brevity_penalty(reference, predicted) * math.exp(sum(map(math.log, precisions)) / longest)


def d2l_bleu(reference: Sequence[Any], predicted: Sequence[Any], longest: int = 2) -> float:
    r"""BLEU with the weights of D2L, which favour long matches; not comparable with `bleu`.

    .. math:: \exp(\min(0, 1 - r / l)) \prod_{n=1}^{\min(N, l)} p_n^{1/2^n}

    Book: D2L 10.7.

    >>> d2l_bleu("il est calme .".split(), "il est calme .".split())
    1.0
    """
    _check_reference(reference, "d2l_bleu")
    score = _brevity_penalty(reference, predicted)
    for n in range(1, min(longest, len(predicted)) + 1):
        score *= _precision(reference, predicted, n) ** 0.5**n
    return score


def _precision(reference: Sequence[Any], predicted: Sequence[Any], n: int) -> float:
    """Clipped n-gram precision of a prediction."""
    reference_counts, predicted_counts = (
        Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for words in (reference, predicted)
    )
    matches = (reference_counts & predicted_counts).total()
    return matches / predicted_counts.total() if predicted_counts else 0.0


def _check_reference(reference: Sequence[Any], name: str) -> None:
    if not len(reference):
        raise WonderlandError(f"{name} got an empty reference.")


def _brevity_penalty(reference: Sequence[Any], predicted: Sequence[Any]) -> float:
    return math.exp(min(0.0, 1 - len(reference) / len(predicted))) if len(predicted) else 0.0


def _same_shape(y: Any, predicted: Any, name: str) -> tuple[ndarray, ndarray]:
    """Both as arrays of the same shape, not empty."""
    if np.shape(y) != np.shape(predicted):
        raise WonderlandError(
            f"y has shape {np.shape(y)} and {name} {np.shape(predicted)}: give both the same shape; nothing is broadcast."
        )
    if not np.size(y):
        raise WonderlandError("y is empty: there is nothing to measure.")
    return np.asarray(y), np.asarray(predicted)


def _labels(y: Any, scores: Any) -> tuple[ndarray, ndarray]:
    """Labels (n,) and scores (n, c) as arrays, checked."""
    if np.ndim(y) != 1 or np.ndim(scores) != 2 or len(y) != len(scores):
        raise WonderlandError(f"Labels have shape (n,) and scores (n, c), not {np.shape(y)} and {np.shape(scores)}.")
    y, scores = np.asarray(y), np.asarray(scores)
    if not len(y):
        raise WonderlandError("y is empty: there is nothing to measure.")
    wrong = y[(y < 0) | (y >= scores.shape[1]) | (y != np.floor(y))]
    if len(wrong):
        raise WonderlandError(f"y has the label {wrong[0]}, and the scores have classes 0 to {scores.shape[1] - 1}.")
    return y.astype(np.int64), scores
