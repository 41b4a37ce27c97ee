"""Evaluation of word vectors: nearest neighbours, analogies, and correlation with human similarity judgements."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError


def nearest_words(vectors: Any, query: Any, count: int = 10, *, without: Sequence[int] = ()) -> list[tuple[int, float]]:
    """The rows of `vectors` (n, d) with the highest cosine similarity to `query` (d,): (row, cosine), highest first.

    Rows of zeros have similarity 0. Book: D2L 15.7; Alice 8.2.

    >>> nearest_words([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [2.0, 0.1], 2)
    [(0, 0.9987523388778446), (2, 0.741535779123771)]
    """
    table = _normalized_rows(vectors, "nearest_words")
    vector = np.asarray(query, np.float64)
    if vector.shape != table.shape[1:]:
        raise WonderlandError(
            f"nearest_words compares vectors of {table.shape[1]} numbers, not a query of shape {vector.shape}."
        )
    if count < 1:
        raise WonderlandError(f"nearest_words returns at least one word, not {count}.")
    cosine = table @ _normalized(vector)
    keep = np.ones(len(table), bool)
    keep[_check_rows(without, len(table))] = False
    order = np.argsort(-cosine, kind="stable")
    return [(int(row), float(cosine[row])) for row in order[keep[order]][:count]]


def analogy(vectors: Any, a: int, b: int, c: int, count: int = 1) -> list[tuple[int, float]]:
    r"""Solve a : b = c : ?: the rows nearest to :math:`v_b - v_a + v_c`, without a, b and c.

    .. math:: \arg\max_d \cos(v_d,\, v_b - v_a + v_c)

    Book: D2L 15.7. Paper: Mikolov et al., 2013.

    >>> analogy([[0.0, 1.0], [1.0, 1.0], [0.0, 3.0], [1.0, 3.0]], 0, 1, 2)[0][0]
    3
    """
    table = np.asarray(vectors, np.float64)
    _normalized_rows(table, "analogy")
    _check_rows((a, b, c), len(table))
    return nearest_words(table, table[b] - table[a] + table[c], count, without=(a, b, c))


def analogy_accuracy(vectors: Any, questions: Any) -> float:
    """The share of questions (m, 4), rows of `a : b = c : d`, whose d is the nearest row, with vectors normalized to length 1 as in word2vec.

    >>> analogy_accuracy([[0.0, 1.0], [1.0, 1.0], [0.0, 3.0], [1.0, 3.0]], [[0, 1, 2, 3]])
    1.0
    """
    table = _normalized_rows(vectors, "analogy_accuracy")
    rows = np.asarray(questions)
    if rows.ndim != 2 or rows.shape[1] != 4 or not len(rows):
        raise WonderlandError(
            f"analogy_accuracy takes questions as rows of four words, (m, 4), not of shape {rows.shape}."
        )
    _check_rows(rows.ravel().tolist(), len(table))
    right = sum(analogy(table, a, b, c)[0][0] == d for a, b, c, d in rows.tolist())
    return right / len(rows)


def similarity(vectors: Any, pairs: Any, judged: Any) -> float:
    """Spearman correlation between the cosine of pairs of words (m, 2) and human similarity judgements `judged` (m,).

    >>> similarity([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], [[0, 1], [0, 2], [1, 2]], [9, 1, 2])
    1.0
    """
    table, both = _normalized_rows(vectors, "similarity"), np.asarray(pairs)
    if both.ndim != 2 or both.shape[1] != 2 or len(both) != len(judged):
        raise WonderlandError(
            f"similarity takes pairs of words (m, 2) and a judgement for each, not {both.shape} and {len(judged)}."
        )
    _check_rows(both.ravel().tolist(), len(table))
    return spearman(np.sum(table[both[:, 0]] * table[both[:, 1]], 1), judged)


def spearman(a: Any, b: Any) -> float:
    """Spearman rank correlation; equal values share the mean of their ranks.

    >>> spearman([1, 2, 3], [10, 20, 15])
    0.5
    """
    x, y = (np.asarray(values, np.float64) for values in (a, b))
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise WonderlandError(
            f"spearman takes two lists of the same length, at least two numbers each, not {x.shape} and {y.shape}."
        )
    x, y = (_ranks(values) for values in (x, y))
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt(np.sum(x * x) * np.sum(y * y)))
    if not size:
        raise WonderlandError("spearman is not defined where all values of one list are equal.")
    return float(np.sum(x * y) / size)


def _ranks(values: ndarray) -> ndarray:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + ends - 1) / 2)[which]


def _normalized_rows(vectors: Any, name: str) -> ndarray:
    table = np.asarray(vectors, np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise WonderlandError(f"{name} takes vectors as rows, (words, dim), not of shape {table.shape}.")
    return _normalized(table)


def _normalized(values: ndarray) -> ndarray:
    length = np.linalg.norm(values, axis=-1, keepdims=True)
    return values / np.where(length > 0, length, 1)


def _check_rows(rows: Sequence[int], count: int) -> list[int]:
    for row in rows:
        if not 0 <= row < count:
            raise WonderlandError(f"Word {row} has no vector: words are 0 to {count - 1}.")
    return list(rows)
