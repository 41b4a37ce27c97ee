"""Metrics on arrays and lists: labels first, predictions second, one number back."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError

Values = ndarray | Sequence[Any]


def accuracy(y: Values, predicted: Values) -> float:
    """Share of rows with the right class.

    >>> accuracy(np.array([0, 1, 1]), np.array([0, 1, 0]))
    0.6666666666666666
    """
    y, predicted = _alike(y, predicted, "predicted")
    return float(np.mean(y == predicted))


def balanced_accuracy(y: Values, predicted: Values) -> float:
    """Mean over the classes that occur of the share found: every class counts alike, however rare.

    >>> balanced_accuracy(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))
    0.5
    """
    y, predicted = _alike(y, predicted, "predicted")
    return float(np.mean([np.mean(predicted[y == label] == label) for label in np.unique(y)]))


def log_loss(y: Values, log_probabilities: Values) -> float:
    """Mean of -log p(true class), in nats. Shapes: y (n,), log-probabilities (n, c)."""
    y, log_probabilities = _labels(y, log_probabilities)
    return float(-np.mean(log_probabilities[np.arange(len(y)), y]))


def auroc(y: Values, scores: Values) -> float | None:
    r"""Probability that a random positive scores above a random negative, ties counted half.

    .. math:: \frac{\sum_{i: y_i = 1} r_i - n_1 (n_1 + 1) / 2}{n_1 n_0}, \qquad r_i \text{ the rank of score } i

    None when one of the two is absent.

    >>> auroc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    y, scores = _alike(y, scores, "scores")
    positive = np.asarray(y, bool)
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return None
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def macro_auroc(y: Values, probabilities: Values) -> float | None:
    """Mean over classes of each class against the rest; two classes give the usual binary number."""
    y, probabilities = _labels(y, probabilities)
    if probabilities.shape[1] == 2:
        return auroc(y == 1, probabilities[:, 1])
    found = [auroc(y == label, probabilities[:, label]) for label in range(probabilities.shape[1])]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else None


def mae(y: Values, predicted: Values) -> float:
    """Mean absolute error."""
    y, predicted = _alike(y, predicted, "predicted")
    return float(np.mean(np.abs(y - predicted)))


def rmse(y: Values, predicted: Values) -> float:
    """Root of the mean squared error."""
    y, predicted = _alike(y, predicted, "predicted")
    return float(np.sqrt(np.mean(np.square(y - predicted))))


def r2(y: Values, predicted: Values) -> float | None:
    """Share of the variance explained; None where the target does not vary."""
    y, predicted = _alike(y, predicted, "predicted")
    total = float(np.sum(np.square(y - np.mean(y))))
    return 1 - float(np.sum(np.square(y - predicted))) / total if total > 0 else None


def confusion(y: Values, predicted: Values, classes: int) -> ndarray:
    """Counts (true class, predicted class).

    >>> confusion(np.array([0, 1, 1]), np.array([0, 1, 0]), 2).tolist()
    [[1, 0], [1, 1]]
    """
    y, predicted = _alike(y, predicted, "predicted")
    for name, found in (("y", y), ("predicted", predicted)):
        wrong = found[(found < 0) | (found >= classes)]
        if len(wrong):
            raise WonderlandError(f"{name} holds the label {wrong[0]}, and the classes are 0 to {classes - 1}.")
    return np.bincount(y * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def zero_one(y: Values, scores: Values) -> float:
    """Share of wrong signs, for classes -1 and +1; a score of 0 decides nothing, and is wrong. Book: Alice 3.2.

    >>> zero_one(np.array([1, -1, 1]), np.array([0.3, 2.0, 0.0]))
    0.6666666666666666
    """
    y, scores = _alike(y, scores, "scores")
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
    own = scores[np.arange(len(y)), y][:, None]
    before = np.arange(scores.shape[1]) < np.asarray(y)[:, None]
    rank = ((scores > own) | ((scores == own) & before)).sum(1)
    return float(np.mean(rank >= k))


def precision_recall_f1(y: Values, predicted: Values, positive: Any = 1) -> tuple[float, float, float]:
    r"""Precision, recall and their harmonic mean for one class against the rest; 0 where one has nothing to count.

    .. math:: P = \frac{TP}{TP + FP}, \qquad R = \frac{TP}{TP + FN}, \qquad F_1 = \frac{2 TP}{2 TP + FP + FN}

    >>> precision_recall_f1(np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0]))
    (0.5, 0.5, 0.5)
    """
    y, predicted = _alike(y, predicted, "predicted")
    true, found = y == positive, predicted == positive
    hits, named, wanted = int((true & found).sum()), int(found.sum()), int(true.sum())
    return (
        hits / named if named else 0.0,
        hits / wanted if wanted else 0.0,
        2 * hits / (named + wanted) if named + wanted else 0.0,
    )


def macro_f1(y: Values, predicted: Values) -> float:
    """Mean of F1 over the classes that occur, in the truth or in the predictions.

    >>> macro_f1(np.array([0, 0, 1]), np.array([0, 0, 0]))
    0.4
    """
    classes = np.union1d(y, predicted)
    return float(np.mean([precision_recall_f1(y, predicted, label)[2] for label in classes]))


def average_precision(y: Values, scores: Values) -> float | None:
    r"""Precision at each positive, read down the scores, on average; rows of one score are read together.

    .. math:: \sum_k (R_k - R_{k-1}) P_k

    None without a positive.

    >>> average_precision(np.array([1, 0, 1]), np.array([0.9, 0.8, 0.7]))
    0.8333333333333333
    """
    y, scores = _alike(y, scores, "scores")
    positive = np.asarray(y, bool)
    if not positive.any():
        return None
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(positive[order])
    last = np.append(np.diff(scores[order]) != 0, True)
    hits, rows = hits[last], np.flatnonzero(last) + 1
    return float(np.sum(np.diff(hits, prepend=0) / hits[-1] * hits / rows))


def brier(y: Values, probabilities: Values) -> float:
    """Squared distance of the probabilities (n, c) from the truth, summed over classes, the mean over rows.

    >>> brier(np.array([0]), np.array([[0.5, 0.5]]))
    0.5
    """
    y, probabilities = _labels(y, probabilities)
    return float(np.mean(np.sum(np.square(probabilities - np.eye(probabilities.shape[1])[y]), 1)))


def perplexity(y: Values, log_probabilities: Values, mask: Values | None = None) -> float:
    r"""How many equally likely tokens the model hesitates between.

    .. math:: \exp\Bigl(-\frac1n \sum_t \log p(y_t)\Bigr)

    A uniform model has its number of tokens, a perfect one 1. Shapes: y (...), log-probabilities (..., c), mask (...) True
    where a token is real. Book: D2L 9.3.

    >>> round(perplexity(np.array([0, 1]), np.log(np.full((2, 4), 0.25))), 12)
    4.0
    """
    shown = np.ones(np.shape(y), bool) if mask is None else np.asarray(mask, bool)
    if not shown.any():
        raise WonderlandError("perplexity got no token to look at: the mask hides them all, or there are none.")
    own, rows = np.asarray(y)[shown], np.asarray(log_probabilities)[shown]
    own, rows = _labels(own, rows)
    return math.exp(log_loss(own, rows))


def bleu(reference: Sequence[Any], predicted: Sequence[Any], longest: int = 4) -> float:
    r"""BLEU of one sentence: geometric mean of n-gram precisions, less for an answer that is too short.

    .. math:: \exp(\min(0, 1 - r / l)) \prod_{n=1}^{N} p_n^{1/N}

    Without smoothing: 0 as soon as one length has no match. Paper: Papineni et al., 2002. See `d2l_bleu` for D2L's.

    >>> bleu("the cat is on the mat".split(), "the cat is on a mat".split())
    0.537284965911771
    """
    _written(reference, "bleu")
    precisions = [_precision(reference, predicted, n) for n in range(1, longest + 1)]
    if not all(precisions):
        return 0.0
    return _brevity(reference, predicted) * math.exp(sum(map(math.log, precisions)) / longest)


def d2l_bleu(reference: Sequence[Any], predicted: Sequence[Any], longest: int = 2) -> float:
    r"""D2L's own weights, which trust long matches more; not comparable with `bleu`.

    .. math:: \exp(\min(0, 1 - r / l)) \prod_{n=1}^{\min(N, l)} p_n^{1/2^n}

    Book: D2L 10.7.

    >>> d2l_bleu("il est calme .".split(), "il est calme .".split())
    1.0
    """
    _written(reference, "d2l_bleu")
    found = _brevity(reference, predicted)
    for n in range(1, min(longest, len(predicted)) + 1):
        found *= _precision(reference, predicted, n) ** 0.5**n
    return found


def _precision(reference: Sequence[Any], predicted: Sequence[Any], n: int) -> float:
    """Share of the n-grams of an answer that the reference has as well, each as often as it has it."""
    wanted, found = (
        Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for words in (reference, predicted)
    )
    return (wanted & found).total() / found.total() if found else 0.0


def _written(reference: Sequence[Any], name: str) -> None:
    if not len(reference):
        raise WonderlandError(f"{name} got an empty reference: there is nothing to compare with.")


def _brevity(reference: Sequence[Any], predicted: Sequence[Any]) -> float:
    return math.exp(min(0.0, 1 - len(reference) / len(predicted))) if len(predicted) else 0.0


def _alike(y: Any, predicted: Any, name: str) -> tuple[ndarray, ndarray]:
    """Both as arrays of one shape, with something in them."""
    if np.shape(y) != np.shape(predicted):
        raise WonderlandError(
            f"y has shape {np.shape(y)} and {name} {np.shape(predicted)}: give both one shape, for nothing is broadcast."
        )
    if not np.size(y):
        raise WonderlandError("y is empty, and there is nothing to measure.")
    return np.asarray(y), np.asarray(predicted)


def _labels(y: Any, scores: Any) -> tuple[ndarray, ndarray]:
    """Labels and scores as arrays that fit each other."""
    if np.ndim(y) != 1 or np.ndim(scores) != 2 or len(y) != len(scores):
        raise WonderlandError(f"Labels (n,) meet scores (n, c), not {np.shape(y)} and {np.shape(scores)}.")
    y, scores = np.asarray(y), np.asarray(scores)
    if not len(y):
        raise WonderlandError("y is empty, and there is nothing to measure.")
    wrong = y[(y < 0) | (y >= scores.shape[1]) | (y != np.floor(y))]
    if len(wrong):
        raise WonderlandError(f"y holds the label {wrong[0]}, and the scores have classes 0 to {scores.shape[1] - 1}.")
    return y.astype(np.int64), scores
