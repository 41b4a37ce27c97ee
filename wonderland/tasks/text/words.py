"""Word vectors on trial: neighbours, analogies, and how people judge likeness."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError


def nearest_words(vectors: Any, query: Any, count: int = 10, *, without: Sequence[int] = ()) -> list[tuple[int, float]]:
    """The rows of `vectors` (n, d) that point most nearly where `query` (d,) does: (row, cosine), nearest first.

    Rows of zeros point nowhere and come last. Book: D2L 15.7; Alice 8.2.

    >>> nearest_words([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [2.0, 0.1], 2)
    [(0, 0.9987523388778446), (2, 0.741535779123771)]
    """
    table = _units(vectors, "nearest_words")
    point = np.asarray(query, np.float64)
    if point.shape != table.shape[1:]:
        raise WonderlandError(f"nearest_words compares vectors of {table.shape[1]} numbers, not one of {point.shape}.")
    if count < 1:
        raise WonderlandError(f"nearest_words finds at least one word, not {count}.")
    cosine = table @ _unit(point)
    keep = np.ones(len(table), bool)
    keep[_rows(without, len(table))] = False
    order = np.argsort(-cosine, kind="stable")
    return [(int(row), float(cosine[row])) for row in order[keep[order]][:count]]


def analogy(vectors: Any, a: int, b: int, c: int, count: int = 1) -> list[tuple[int, float]]:
    r"""What is to c as b is to a: the rows nearest to :math:`v_b - v_a + v_c`, the three themselves left out.

    .. math:: \arg\max_d \cos(v_d,\, v_b - v_a + v_c)

    Book: D2L 15.7. Paper: Mikolov et al., 2013.

    >>> analogy([[0.0, 1.0], [1.0, 1.0], [0.0, 3.0], [1.0, 3.0]], 0, 1, 2)[0][0]
    3
    """
    table = np.asarray(vectors, np.float64)
    _units(table, "analogy")
    _rows((a, b, c), len(table))
    return nearest_words(table, table[b] - table[a] + table[c], count, without=(a, b, c))


def analogy_accuracy(vectors: Any, questions: Any) -> float:
    """The share of questions (m, 4), rows of `a : b = c : d`, whose d is found first; units of length 1 as word2vec does.

    >>> analogy_accuracy([[0.0, 1.0], [1.0, 1.0], [0.0, 3.0], [1.0, 3.0]], [[0, 1, 2, 3]])
    1.0
    """
    table = _units(vectors, "analogy_accuracy")
    asked = np.asarray(questions)
    if asked.ndim != 2 or asked.shape[1] != 4 or not len(asked):
        raise WonderlandError(
            f"analogy_accuracy takes questions as rows of four words, (m, 4), not of shape {asked.shape}."
        )
    _rows(asked.ravel().tolist(), len(table))
    right = sum(analogy(table, a, b, c)[0][0] == d for a, b, c, d in asked.tolist())
    return right / len(asked)


def similarity(vectors: Any, pairs: Any, judged: Any) -> float:
    """Spearman's correlation between the cosine of pairs of words (m, 2) and how alike people `judged` them (m,).

    >>> similarity([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], [[0, 1], [0, 2], [1, 2]], [9, 1, 2])
    1.0
    """
    table, both = _units(vectors, "similarity"), np.asarray(pairs)
    if both.ndim != 2 or both.shape[1] != 2 or len(both) != len(judged):
        raise WonderlandError(
            f"similarity takes pairs of words (m, 2) and a judgement for each, not {both.shape} and {len(judged)}."
        )
    _rows(both.ravel().tolist(), len(table))
    return spearman(np.sum(table[both[:, 0]] * table[both[:, 1]], 1), judged)


def spearman(a: Any, b: Any) -> float:
    """Correlation of ranks; equal values share the mean of their ranks.

    >>> spearman([1, 2, 3], [10, 20, 15])
    0.5
    """
    x, y = (np.asarray(values, np.float64) for values in (a, b))
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise WonderlandError(
            f"spearman takes two lists of one length, at least two numbers each, not {x.shape} and {y.shape}."
        )
    x, y = (_ranks(values) for values in (x, y))
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt(np.sum(x * x) * np.sum(y * y)))
    if not size:
        raise WonderlandError("spearman takes values that differ: all of one list are equal.")
    return float(np.sum(x * y) / size)


def _ranks(values: ndarray) -> ndarray:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + ends - 1) / 2)[which]


def _units(vectors: Any, name: str) -> ndarray:
    table = np.asarray(vectors, np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise WonderlandError(f"{name} takes vectors as rows, (words, dim), not of shape {table.shape}.")
    return _unit(table)


def _unit(values: ndarray) -> ndarray:
    length = np.linalg.norm(values, axis=-1, keepdims=True)
    return values / np.where(length > 0, length, 1)


def _rows(rows: Sequence[int], count: int) -> list[int]:
    for row in rows:
        if not 0 <= row < count:
            raise WonderlandError(f"Word {row} has no vector: words are 0 to {count - 1}.")
    return list(rows)
