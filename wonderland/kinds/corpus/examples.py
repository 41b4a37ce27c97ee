"""Examples of a corpus: random windows or packed documents for training; every token once for evaluation."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from wonderland.core.batch import Batch
from wonderland.data.examples import Examples
from wonderland.data.text.packing import PackedDocuments
from wonderland.data.text.token_file import TokenFile
from wonderland.data.text.windows import Windows

ROWS = 64


class TokenExamples(Examples):
    """The token files of a corpus; a part is one of them."""

    unit = "token"

    def __init__(self, encoder: Any, many: bool):
        self.encoder, self.many = encoder, many

    def shuffled(
        self, part: TokenFile, *, size: int, seed: int, rows: Sequence[np.ndarray] | None = None, augment: Any = None,
        workers: int = 0,
    ) -> Any:  # fmt: skip
        """Windows of the training part, or rows of packed documents."""
        context = self.encoder.context
        if packs(part, context, self.many):
            return PackedBatches(part, context=context, size=size, seed=seed)
        return Windows(part, context=context, size=size, seed=seed)

    def in_order(self, part: TokenFile, *, size: int = ROWS, most: int | None = None) -> Iterator[Batch]:
        """Batches that predict every token but the first of a text (or of each document) once."""
        context = self.encoder.context
        if packs(part, context, self.many):
            packed = PackedDocuments(part, context=context, size=size)
            stop = len(packed.rows) if most is None else min(len(packed.rows), max(1, most // context))
            for first in range(0, stop, size):
                yield packed_batch(packed.take(range(first, min(stop, first + size))))
            return
        begins = np.arange(0, len(part) - 1, context)
        begins = begins if most is None else begins[: max(1, most // context)]
        inner = set(part.documents[1:-1].tolist()) if len(part.documents) > 2 else set()
        for first in range(0, len(begins), size):
            rows = begins[first : first + size]
            x, y = np.zeros((len(rows), context), np.int64), np.full((len(rows), context), -100, np.int64)
            for row, begin in enumerate(rows):
                tokens = np.asarray(part.tokens[begin : begin + context + 1], np.int64)
                x[row, : len(tokens) - 1], y[row, : len(tokens) - 1] = tokens[:-1], tokens[1:]
                for place in range(int(begin) + 1, int(begin) + len(tokens)) if inner else ():
                    if place in inner:
                        y[row, place - int(begin) - 1] = -100
            yield Batch({"x": torch.from_numpy(x), "y": torch.from_numpy(y)})

    def count(self, part: TokenFile) -> int:
        return len(part)

    def everything(self) -> TokenFile:
        raise AssertionError("a corpus has no part that holds all of it")

    def bytes_of(self, part: TokenFile, tokens: int) -> float:
        """The bytes of text behind a number of tokens of a part, estimated by its average."""
        return int(part.bytes[-1]) * tokens / max(1, len(part))

    def bytes_measured(self, part: TokenFile, batches: list[Batch], most: int | None) -> int:
        """The bytes of text behind the tokens of some batches, which may be all of a part."""
        if most is None or len(part) <= most:
            return int(part.bytes[-1])
        return round(self.bytes_of(part, sum(int((batch["y"] != -100).sum()) for batch in batches)))


class DocumentExamples(Examples):
    """New documents in memory, read in windows of the context."""

    unit = "token"

    def __init__(self, encoder: Any, texts: list[str]):
        self.encoder, self.documents = encoder, texts

    def shuffled(self, part: Any, **options: Any) -> Any:
        raise AssertionError("new documents are measured, not learned from")

    def texts(self, part: np.ndarray) -> list[str]:
        """The documents of a part."""
        return [self.documents[i] for i in part]

    def in_order(self, part: np.ndarray, *, size: int = ROWS, most: int | None = None) -> Iterator[Batch]:
        context, windows = self.encoder.context, []
        for text in self.texts(part):
            ids = np.array([*self.encoder.frame, *self.encoder.tokenizer.encode(text)], np.int64)
            windows += [ids[begin : begin + context + 1] for begin in range(0, len(ids) - 1, context)]
        for first in range(0, len(windows), size):
            rows = windows[first : first + size]
            # Padded on the right, where a causal model never looks.
            x, y = torch.zeros(len(rows), context, dtype=torch.int64), torch.full((len(rows), context), -100)
            for row, ids in enumerate(rows):
                x[row, : len(ids) - 1], y[row, : len(ids) - 1] = torch.from_numpy(ids[:-1]), torch.from_numpy(ids[1:])
            yield Batch({"x": x, "y": y})

    def count(self, part: np.ndarray) -> int:
        return len(part)

    def everything(self) -> np.ndarray:
        return np.arange(len(self.documents))

    def bytes_measured(self, part: np.ndarray, batches: list[Batch], most: int | None) -> int:
        """The bytes of all texts of a part."""
        return sum(len(text.encode()) for text in self.texts(part))


class PackedBatches(PackedDocuments):
    """Packed documents as batches of tokens, targets and segments."""

    def batch(self, epoch: int, position: int) -> Any:
        return packed_batch(super().batch(epoch, position))


def packed_batch(packed: Any) -> Batch:
    """The fields x, y and segments, each (b, t)."""
    return Batch({"x": packed.tokens, "y": packed.targets, "segments": packed.segments})


def packs(file: TokenFile, context: int, many: bool) -> bool:
    """Whether documents are packed: many of them, not much longer than the context. Long documents are read in windows."""
    return many and len(file) / max(1, len(file.documents) - 1) < 16 * context
