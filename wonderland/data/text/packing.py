"""Packing: several short documents in one row, kept apart by segment numbers."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, permutation
from wonderland.data.text.token_file import TokenFile
from wonderland.data.text.windows import IGNORED


@dataclass(frozen=True)
class Packed:
    """Rows of packed documents: `tokens`, `targets` (-100 where there is none) and `segments`, all (b, t).

    `segments` counts the documents of a row from 1; 0 is padding. The last token of a document has no target, so no target
    ever crosses a boundary.
    """

    tokens: Tensor
    targets: Tensor
    segments: Tensor


def pack(lengths: Sequence[int] | np.ndarray, context: int) -> list[list[int]]:
    """Which documents share a row of `context` tokens: the longest first, each into the fullest row that still has room.

    >>> pack([5, 3, 4, 2], context=8)
    [[0, 1], [2, 3]]
    """
    if context < 1:
        raise WonderlandError(f"A row has at least one token, not {context}.")
    sizes = np.asarray(lengths, np.int64)
    if len(sizes) and (sizes.max() > context or sizes.min() < 1):
        wrong = int(np.argmax((sizes > context) | (sizes < 1)))
        raise WonderlandError(f"Document {wrong} has {sizes[wrong]:,} tokens, and a row holds 1 to {context:,}.")
    rows_by_room: list[list[list[int]]] = [[] for _ in range(context + 1)]
    rows: list[list[int]] = []
    has_rows = np.zeros(context + 1, bool)
    for i in np.argsort(-sizes, kind="stable"):
        fitting = np.flatnonzero(has_rows[sizes[i] :])
        if len(fitting):
            room = int(fitting[0]) + int(sizes[i])
            row = rows_by_room[room].pop()
            has_rows[room] = bool(rows_by_room[room])
        else:
            room, row = context, []
            rows.append(row)
        row.append(int(i))
        left = room - int(sizes[i])
        rows_by_room[left].append(row)
        has_rows[left] = True
    return rows


class PackedDocuments:
    """Batches of packed documents from a `TokenFile`, or from tokens and the offset of each document.

    A document longer than `context` is cut into pieces that overlap by one token, so that every token but a document's
    first is a target once. The packing is the same in every epoch; which rows form a batch is drawn from (seed, epoch).

    >>> packed = PackedDocuments(np.arange(10), np.array([0, 3, 8, 10]), context=8, size=1)
    >>> packed.take([0]).segments.tolist()
    [[1, 1, 1, 1, 1, 2, 2, 2]]
    """

    workers = 0

    def __init__(
        self, tokens: Any, documents: np.ndarray | None = None, *, context: int, size: int, seed: int = 0, pad: int = 0
    ):
        if isinstance(tokens, TokenFile):
            tokens, documents = tokens.tokens, tokens.documents
        if documents is None:
            raise WonderlandError("Packing needs to know where each document begins: give documents.")
        if context < 2 or size < 1:
            raise WonderlandError(f"Packing needs two tokens a row and one row, not context={context}, size={size}.")
        self.tokens, self.context, self.seed, self.pad = tokens, context, seed, pad
        self.spans = spans(documents, context)
        if not len(self.spans):
            raise WonderlandError("No document has two tokens, so there is nothing to predict: give longer texts.")
        self.rows = pack(self.spans[:, 1] - self.spans[:, 0], context)
        self.size = min(size, len(self.rows))
        self.per_epoch = len(self.rows) // self.size
        self._epoch, self._order = -1, np.zeros(0, np.int64)

    def batch(self, epoch: int, position: int) -> Packed:
        """The batch at one position of one epoch."""
        if self._epoch != epoch:
            self._epoch, self._order = epoch, permutation(self.seed, epoch, len(self.rows))
        return self.take(self._order[position * self.size : (position + 1) * self.size])

    def take(self, rows: Sequence[int] | np.ndarray) -> Packed:
        """Some rows by number."""
        shape = (len(rows), self.context)
        tokens, targets = np.full(shape, self.pad, np.int64), np.full(shape, IGNORED, np.int64)
        segments = np.zeros(shape, np.int64)
        for r, row in enumerate(rows):
            start = 0
            for number, span in enumerate(self.rows[int(row)], start=1):
                ids = np.asarray(self.tokens[self.spans[span, 0] : self.spans[span, 1]], np.int64)
                stop = start + len(ids)
                tokens[r, start:stop] = ids
                targets[r, start : stop - 1] = ids[1:]
                segments[r, start:stop] = number
                start = stop
        return Packed(*(torch.from_numpy(array) for array in (tokens, targets, segments)))

    def stream(self, first: int, stop: int) -> Generator[Packed, None, None]:
        """Batches of steps `first` to `stop - 1`."""
        for step in range(first, stop):
            yield self.batch(*divmod(step, self.per_epoch))


def spans(documents: np.ndarray, context: int) -> np.ndarray:
    """Pieces of documents of at most `context` tokens, (n, 2): begin and end; each shares a token with the one before it.

    >>> spans(np.array([0, 3, 10]), 4).tolist()
    [[0, 3], [3, 7], [6, 10]]
    """
    begin, stop = np.asarray(documents[:-1], np.int64), np.asarray(documents[1:], np.int64)
    pieces = np.maximum(0, -(-(stop - begin - 1) // (context - 1)))
    owner = np.repeat(np.arange(len(begin)), pieces)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = begin[owner] + nth * (context - 1)
    return np.stack([first, np.minimum(first + context, stop[owner])], 1)
