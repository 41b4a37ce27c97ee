"""Sparse features of texts: words, pairs of neighbouring words and pieces of words, weighted by TF-IDF; for linear models."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError

WORDS, PIECES, COLUMNS, RELATION = range(4)  # blocks of features: the last two bits of a key
BLOCK_WEIGHTS = np.array([1.0, 0.7, 0.7, 1.0], np.float32)
PIECE_LENGTHS = (2, 3, 4, 5)
MOST_FEATURES = 400_000
MOST_OF_A_TEXT = 4096  # features of one text; the largest are kept
LONGEST_WORD = 40
FIRST_WITH = 6  # words after the first of a text that are paired with it
LONGEST_TEXT = 20_000  # words of one text; the rest is not read
SHORT = 80  # distinct words: pieces are for texts that are shorter on average
CHUNK = 2000
_TOKEN = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W\u2e80-\u9fff\uac00-\ud7af]+|[^\w\s]")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_START, _END = "\x02", "\x03"


def split_tokens(text: str) -> list[str]:
    """Words and signs of a text in small letters; each Chinese or Japanese character is one.

    >>> split_tokens("It's 5 o'clock!")
    ['it', "'", 's', '5', 'o', "'", 'clock', '!']
    """
    return [token[:LONGEST_WORD] for token in _TOKEN.findall(text.lower())[:LONGEST_TEXT]]


@dataclass(frozen=True, eq=False)
class SparseTexts:
    """Features of texts in rows: those of row i are `ids[starts[i]:starts[i + 1]]`, with `values` of the same places."""

    starts: np.ndarray
    ids: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self, index: np.ndarray) -> "SparseTexts":
        """Some of the rows."""
        index = np.asarray(index)
        lengths = (self.starts[1:] - self.starts[:-1])[index]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.starts[:-1][index] - starts[:-1], lengths) + np.arange(starts[-1])
        return SparseTexts(starts, self.ids[places], self.values[places])


@dataclass(frozen=True, eq=False)
class Grams:
    r"""The features that occur in the training texts, and their weights.

    .. math::
        f_j(t) = \frac{w_b\, v_j}{\lVert v^{(b)} \rVert}, \qquad v_j = (1 + \log n_j)\, \mathrm{idf}_j, \qquad
        \mathrm{idf}_j = 1 + \log \frac{1 + N}{1 + N_j}

    n_j counts feature j in the text, N_j the training texts that have it; each block b of features (words and pairs of
    words, neighbours and the first word with the next ones; pieces of two to five letters; words by their column; what two columns share) has a norm of its own. A feature is known
    by a hash of 64 bits: `keys` (f,) in order, `idf` (f,).

    >>> texts = [["good food"], ["bad food"], ["good service"]]
    >>> grams = Grams.fit(texts)
    >>> len(grams.encode([["good food"]])), len(grams.encode([["nothing known"]]).ids) < 6
    (1, True)
    """

    keys: np.ndarray
    idf: np.ndarray
    pieces: bool

    @classmethod
    def fit(cls, texts: Sequence[Sequence[str]], *, most: int = MOST_FEATURES) -> "Grams":
        """Features of training texts, each a sequence of its columns; those of a single text are left out where there are many texts."""
        sample = [text for row in texts[:: max(1, len(texts) // 2000)] for text in ["\n".join(row)]]
        pieces = np.mean([len(set(split_tokens(text))) for text in sample]) <= SHORT if sample else True
        keys, counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        for chunk in _chunks(texts):
            rows, occurring, _ = _occurrences(chunk, bool(pieces))
            unique, place = np.unique(occurring, return_inverse=True)
            once = np.unique(rows * len(unique) + place)
            keys, counts = _added(keys, counts, unique, np.bincount(once % max(1, len(unique)), minlength=len(unique)))
            if len(keys) > 8 * most:  # a bound on memory: the rarest are forgotten
                kept = counts >= np.partition(counts, -4 * most)[-4 * most]
                keys, counts = keys[kept], counts[kept]
        least = 2 if len(texts) >= 500 else 1
        kept = np.flatnonzero(counts >= least)
        if len(kept) > most:
            kept = np.sort(kept[np.argsort(-counts[kept], kind="stable")[:most]])
        idf = 1 + np.log((1 + len(texts)) / (1 + counts[kept]))
        return cls(keys[kept], idf.astype(np.float32), bool(pieces))

    def __len__(self) -> int:
        return len(self.keys)

    def encode(self, texts: Sequence[Sequence[str]]) -> SparseTexts:
        """The features of texts."""
        pieces = [self._encode_chunk(chunk) for chunk in _chunks(texts)]
        if not pieces:
            return SparseTexts(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        lengths = np.concatenate([np.diff(piece.starts) for piece in pieces])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return SparseTexts(starts, np.concatenate([p.ids for p in pieces]), np.concatenate([p.values for p in pieces]))

    def _encode_chunk(self, texts: Sequence[Sequence[str]]) -> SparseTexts:
        if not len(self):
            return SparseTexts(np.zeros(len(texts) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        rows, occurring, weights = _occurrences(texts, self.pieces)
        place = np.minimum(np.searchsorted(self.keys, occurring), len(self) - 1)
        known = self.keys[place] == occurring
        joined, where = np.unique(rows[known] * len(self) + place[known], return_inverse=True)
        counts = np.bincount(where, weights[known], minlength=len(joined))
        row, column = joined // len(self), joined % len(self)
        values = ((1 + np.log(counts)) * self.idf[column]).astype(np.float32)
        block = (self.keys[column] & np.uint64(3)).astype(np.int64)
        norms = np.sqrt(np.bincount(row * 4 + block, values * values, minlength=4 * len(texts))).astype(np.float32)
        values *= BLOCK_WEIGHTS[block] / np.maximum(norms[row * 4 + block], 1e-12)
        lengths = np.bincount(row, minlength=len(texts))
        if len(lengths) and lengths.max() > MOST_OF_A_TEXT:
            order = np.lexsort((-values, row))
            rank = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            kept = np.sort(order[rank < MOST_OF_A_TEXT])
            row, column, values = row[kept], column[kept], values[kept]
            lengths = np.bincount(row, minlength=len(texts))
        return SparseTexts(np.concatenate([[0], np.cumsum(lengths)]), column.astype(np.int32), values)

    def tensors(self) -> dict[str, Tensor]:
        """The arrays, to be saved."""
        return {"keys": torch.from_numpy(self.keys.view(np.int64).copy()), "idf": torch.from_numpy(self.idf.copy())}

    @classmethod
    def read(cls, tensors: dict[str, Tensor], pieces: Any) -> "Grams":
        """From `tensors`; anything else is refused."""
        keys, idf = tensors.get("keys"), tensors.get("idf")
        fits = (
            isinstance(keys, Tensor) and isinstance(idf, Tensor) and keys.dtype == torch.int64 and idf.dtype == torch.float32
            and keys.dim() == idf.dim() == 1 and len(keys) == len(idf) and isinstance(pieces, bool)
            and bool(torch.isfinite(idf).all())
        )  # fmt: skip
        if fits:
            assert isinstance(keys, Tensor)
            assert isinstance(idf, Tensor)
            numbers = keys.numpy().copy().view(np.uint64)
            if bool((numbers[1:] > numbers[:-1]).all()):
                return cls(numbers, idf.numpy().copy(), bool(pieces))
        raise WonderlandError("preprocess.safetensors does not hold the features of texts: it is damaged or not ours.")


def _chunks(texts: Sequence[Sequence[str]]) -> Iterator[Sequence[Sequence[str]]]:
    return (texts[first : first + CHUNK] for first in range(0, len(texts), CHUNK))


def _added(
    keys: np.ndarray, counts: np.ndarray, more: np.ndarray, more_counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Two tables of counts as one."""
    joined, place = np.unique(np.concatenate([keys, more]), return_inverse=True)
    return joined, np.bincount(place, np.concatenate([counts, more_counts]), minlength=len(joined)).astype(np.int64)


class _Vocabulary:
    """The distinct words of some texts, with their hashes and those of their pieces."""

    def __init__(self) -> None:
        self.place: dict[str, int] = {_START: 0, _END: 1}

    def ids(self, tokens: Sequence[str]) -> np.ndarray:
        place = self.place
        return np.array([place.setdefault(token, len(place)) for token in tokens], np.int64)

    def hashes(self) -> np.ndarray:
        digests = b"".join(
            hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in self.place
        )
        return np.frombuffer(digests, "<u8").astype(np.uint64)

    def pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of the pieces of each word, and where those of a word start (words + 1,)."""
        padded = ["", "", *(f"\x01{word}\x01" for word in list(self.place)[2:])]
        lengths = np.array([len(word) for word in padded], np.int64)
        letters = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
        owner = np.repeat(np.arange(len(padded)), lengths)
        keys, owners = [], []
        for size in PIECE_LENGTHS:
            if len(letters) < size:
                continue
            inside = owner[: len(letters) - size + 1] == owner[size - 1 :]
            key = np.full(int(inside.sum()), size, np.uint64)
            first = np.flatnonzero(inside)
            for shift in range(size):
                key = _mixed(key, letters[first + shift])
            keys.append(key)
            owners.append(owner[first])
        owners, keys = np.concatenate(owners or [owner[:0]]), np.concatenate(keys or [letters[:0]])
        order = np.argsort(owners, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(padded)))])
        return keys[order], starts


def _mixed(a: np.ndarray, b: np.ndarray | np.uint64) -> np.ndarray:
    """One hash of two."""
    with np.errstate(over="ignore"):
        mixed = (a ^ (a >> np.uint64(29))) * _MULTIPLIER + b
        return (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)


def _block(keys: np.ndarray, block: int) -> np.ndarray:
    return (keys & ~np.uint64(3)) | np.uint64(block)


def _occurrences(texts: Sequence[Sequence[str]], pieces: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, key and count of each feature of each text; a feature may occur several times."""
    vocabulary, columns = _Vocabulary(), max(map(len, texts), default=1)
    ids, rows, column = [], [], []
    for row, text in enumerate(texts):
        for index, cell in enumerate(text):
            blocks = vocabulary.ids([_START, *split_tokens(cell), _END])
            ids.append(blocks)
            rows.append(np.full(len(blocks), row))
            column.append(np.full(len(blocks), index))
    empty = np.zeros(0, np.int64)
    ids, rows, column = (np.concatenate(part or [empty]) for part in (ids, rows, column))
    hashes = vocabulary.hashes()
    word = ids > 1
    followed = np.flatnonzero(ids[:-1] != 1) if len(ids) else empty
    pairs = _mixed(hashes[ids[followed]], hashes[ids[followed + 1]]) if len(ids) else hashes[:0]
    blocks = [(rows[word], _block(hashes[ids[word]], WORDS)), (rows[followed], _block(pairs, WORDS))]
    blocks += _with_first(ids, rows, hashes)
    if columns > 1:
        mark = (column + 11).astype(np.uint64)
        blocks.append((rows[word], _block(_mixed(hashes[ids[word]], mark[word]), COLUMNS)))
        blocks.append((rows[followed], _block(_mixed(pairs, mark[followed]), COLUMNS)))
    counts = [np.ones(len(part[0])) for part in blocks]
    if pieces:
        distinct, count = np.unique(rows[word] * len(hashes) + ids[word], return_counts=True)
        keys, starts = vocabulary.pieces()
        owner = distinct % len(hashes)
        lengths = np.diff(starts)[owner]
        ends = np.cumsum(lengths)
        places = np.repeat(starts[:-1][owner] - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
        blocks.append((np.repeat(distinct // len(hashes), lengths), _block(keys[places], PIECES)))
        counts.append(np.repeat(count, lengths).astype(np.float64))
    if columns > 1:
        blocks.append(_relation(ids, rows, column, hashes))
        counts.append(np.ones(len(blocks[-1][0])))
    all_rows, keys = (np.concatenate([part[i] for part in blocks]) for i in (0, 1))
    return all_rows, keys, np.concatenate(counts)


def _with_first(ids: np.ndarray, rows: np.ndarray, hashes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first word of each text together with each of the next ones but its neighbour: a question is told by both."""
    begin, end = np.flatnonzero(ids == 0), np.flatnonzero(ids == 1)
    pairs = []
    for offset in range(2, FIRST_WITH + 1):
        inside = begin + 1 + offset < end
        first, other = begin[inside] + 1, begin[inside] + 1 + offset
        keys = _mixed(_mixed(hashes[ids[first]], np.uint64(301)), hashes[ids[other]])
        pairs.append((rows[first], _block(keys, WORDS)))
    return pairs


def _relation(
    ids: np.ndarray, rows: np.ndarray, column: np.ndarray, hashes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the first two columns share: words of both, words of one alone, and how many there are, in steps."""
    word = (ids > 1) & (column < 2)
    count = len(hashes)
    sides = [np.unique(rows[word & (column == side)] * count + ids[word & (column == side)]) for side in (0, 1)]
    both = np.intersect1d(*sides, assume_unique=True)
    rest = [np.setdiff1d(side, both, assume_unique=True) for side in sides]
    made_rows, relation_keys = [], []
    for mark, part in enumerate((both, *rest), 101):
        made_rows.append(part // count)
        relation_keys.append(_mixed(hashes[part % count], np.uint64(mark)))
    size = int(rows.max()) + 1 if len(rows) else 0
    shared, first, second = (np.bincount(part // count, minlength=size).astype(float) for part in (both, *rest))
    for mark, share in enumerate(
        (shared / np.maximum(1, shared + first + second), first / np.maximum(1, shared + first), second / np.maximum(1, shared + second),
         np.log2(1 + shared) / 8, np.log2(1 + first) / 8, np.log2(1 + second) / 8), 201,
    ):  # fmt: skip
        step = np.minimum(share * 10, 15).astype(np.uint64)
        made_rows += [np.arange(size)]
        relation_keys += [_mixed(step + np.uint64(1), np.uint64(mark))]
    return np.concatenate(made_rows), _block(np.concatenate(relation_keys), RELATION)
