"""Features of a text column: its words weighted by TF-IDF and projected onto their main directions."""

import re
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core.errors import WonderlandError

MOST_WORDS = 4000
MOST_DIMENSIONS = 64
ROWS_PER_DIMENSION = 40
LONGEST_WORD = 40
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class TextFeatures:
    r"""Words of the training texts, the weight of each (w,), and a projection (w, k).

    .. math::
        f(t) = \frac{v}{\lVert v \rVert} P, \qquad v_j = (1 + \log n_j)\, \mathrm{idf}_j, \qquad
        \mathrm{idf}_j = 1 + \log \frac{1 + N}{1 + N_j}

    n_j counts word j in the text, N_j the training texts that have it. P holds the first right singular vectors of the
    training rows, all divided by one number, so that the first feature has unit variance and the others less.

    >>> texts = np.array(["good food", "bad food", "good service", "bad service"] * 20, dtype=object)
    >>> TextFeatures.fit(texts, np.arange(80)).values(texts).shape
    (80, 2)
    """

    words: tuple[str, ...]
    weights: np.ndarray
    projection: np.ndarray

    @classmethod
    def fit(cls, texts: np.ndarray, codes: np.ndarray) -> "TextFeatures | None":
        """Features of the rows `texts[codes]`, all of them training rows; None where no word repeats."""
        repeats = np.bincount(codes, minlength=len(texts))
        documents: Counter[str] = Counter()
        for text, rows in zip(texts, repeats, strict=True):
            for word in set(split_words(text)):
                documents[word] += int(rows)
        common = sorted(documents.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDS]
        words = tuple(sorted(word for word, rows in common if rows >= 2))
        if not words:
            return None
        counted = np.array([documents[word] for word in words], np.float64)
        weights = 1 + np.log((1 + len(codes)) / (1 + counted))
        matrix = _weighted(texts, words, weights)
        dimensions = int(np.clip(len(codes) // ROWS_PER_DIMENSION, 2, MOST_DIMENSIONS))
        by_rows = _weighted(texts, words, weights, np.sqrt(repeats))
        directions = _main_directions(by_rows, min(dimensions, len(words)))
        scores = (matrix @ directions)[torch.as_tensor(codes)]
        spread = float(scores.std(0, correction=0).max())
        return cls(words, weights, (directions / (spread or 1.0)).numpy())

    @property
    def dimensions(self) -> int:
        """The number of features."""
        return self.projection.shape[1]

    def values(self, texts: np.ndarray) -> np.ndarray:
        """The features of texts (n,): (n, k)."""
        if len(texts) == 0:
            return np.zeros((0, self.dimensions))
        return (_weighted(texts, self.words, self.weights) @ torch.as_tensor(self.projection)).numpy()

    def tensors(self) -> dict[str, Tensor]:
        """The arrays to save."""
        return {"weights": torch.from_numpy(self.weights), "projection": torch.from_numpy(self.projection)}

    @classmethod
    def read(cls, words: Any, tensors: dict[str, Tensor | None]) -> "TextFeatures":
        """Read back what was saved; raises a WonderlandError where it does not fit together."""
        known = isinstance(words, list | tuple) and 0 < len(words) <= MOST_WORDS
        if not known or not all(isinstance(word, str) and 0 < len(word) <= LONGEST_WORD for word in words):
            raise WonderlandError("a text column has no list of words")
        weights, projection = tensors.get("weights"), tensors.get("projection")
        fits = (
            isinstance(weights, Tensor) and isinstance(projection, Tensor)
            and weights.dtype == projection.dtype == torch.float64
            and tuple(weights.shape) == (len(words),) and projection.dim() == 2
            and projection.shape[0] == len(words) and 0 < projection.shape[1] <= MOST_DIMENSIONS
            and bool(torch.isfinite(weights).all()) and bool(torch.isfinite(projection).all())
        )  # fmt: skip
        if not fits:
            raise WonderlandError("the tensors of a text column do not fit its words")
        assert isinstance(weights, Tensor)
        assert isinstance(projection, Tensor)
        return cls(tuple(words), weights.numpy().copy(), projection.numpy().copy())


def split_words(text: str) -> list[str]:
    """The words of a text in small letters, cut at 40 characters."""
    return [word[:LONGEST_WORD] for word in whole_words(text)]


def whole_words(text: str) -> list[str]:
    """The words of a text in small letters."""
    return _WORD.findall(text.lower())


def _weighted(
    texts: np.ndarray, words: tuple[str, ...], weights: np.ndarray, lengths: np.ndarray | None = None
) -> Tensor:
    """TF-IDF rows of the given lengths (n,), by default one, sparse: (n, w)."""
    place = {word: i for i, word in enumerate(words)}
    row_of, column_of, values = [], [], []
    for row, text in enumerate(texts):
        counts = Counter(place[word] for word in split_words(text) if word in place)
        if counts:
            columns = sorted(counts)
            entries = (1 + np.log([counts[column] for column in columns])) * weights[columns]
            row_of += [row] * len(columns)
            column_of += columns
            values.append(entries * ((1.0 if lengths is None else lengths[row]) / np.linalg.norm(entries)))
    index = torch.tensor([row_of, column_of], dtype=torch.long).reshape(2, -1)
    entries = torch.from_numpy(np.concatenate(values)) if values else torch.zeros(0, dtype=torch.float64)
    return torch.sparse_coo_tensor(index, entries, (len(texts), len(words)), check_invariants=False).coalesce()


def _main_directions(matrix: Tensor, count: int, sweeps: int = 6) -> Tensor:
    """The first right singular vectors of a sparse matrix by subspace iteration: (w, count)."""
    generator = torch.Generator().manual_seed(0)
    width = min(matrix.shape[1], count + 8)
    basis = torch.linalg.qr(torch.randn(matrix.shape[1], width, generator=generator, dtype=torch.float64)).Q
    transposed = matrix.t().coalesce()
    for _ in range(sweeps):
        basis = torch.linalg.qr(torch.sparse.mm(transposed, torch.sparse.mm(matrix, basis))).Q
    vectors = torch.linalg.svd(torch.sparse.mm(matrix, basis), full_matrices=False).Vh
    directions = basis @ vectors.T[:, :count]
    largest = directions.abs().argmax(0)  # the sign of a singular vector is arbitrary: its largest entry is positive
    return directions * directions[largest, torch.arange(directions.shape[1])].sign()


BUCKETS = 32


def hashed_counts(texts: np.ndarray) -> np.ndarray:
    """Log counts of words in hashed groups: (n, groups). For runs of version 0.9, and texts in which no word repeats."""
    table = np.zeros((len(texts), BUCKETS))
    for row, text in zip(table, texts, strict=True):
        for word in whole_words(text):
            row[zlib.crc32(word.encode("utf-8", "surrogatepass")) % BUCKETS] += 1
    return np.log1p(table)
