"""Windows: batches from a long stream of tokens, a pure function of (seed, epoch, position)."""

from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, mix, uniform
from wonderland.data.text.token_file import TokenFile

IGNORED = -100


class Windows:
    r"""Batches (x, y) of `context` tokens and the tokens that follow them, from an array or a `TokenFile`.

    .. math:: x = (w_i, \dots, w_{i+t-1}), \qquad y = (w_{i+1}, \dots, w_{i+t})

    Order "random": every window begins at an offset drawn from (seed, epoch, index). "contiguous": row r of a batch continues
    row r of the previous batch, for models that carry a state; the first offset is drawn for each epoch.
    With `documents` (their offsets), a target that belongs to the next document is -100, which losses ignore.

    Shapes: x, y (b, t) int64. Book: D2L 9.2.3 and 9.7.

    >>> windows = Windows(np.arange(100), context=8, size=2, seed=0)
    >>> x, y = windows.batch(0, 0)
    >>> x.shape, bool((y == x + 1).all()), windows.per_epoch
    (torch.Size([2, 8]), True, 6)
    """

    workers = 0

    def __init__(
        self,
        tokens: Any,
        *,
        context: int,
        size: int,
        seed: int = 0,
        order: str = "random",
        vocab: int | None = None,
        documents: np.ndarray | None = None,
    ):
        if isinstance(tokens, TokenFile):
            vocab = tokens.vocab if vocab is None else vocab
            documents = tokens.documents if documents is None else documents
            tokens = tokens.tokens
        if order not in ("random", "contiguous"):
            raise WonderlandError(f"Windows come in the order 'random' or 'contiguous', not {order!r}.")
        if context < 1 or size < 1:
            raise WonderlandError(f"Windows need at least one token and one row, not context={context}, size={size}.")
        if len(tokens) < context + 1:
            raise WonderlandError(
                f"The text has {len(tokens):,} tokens, and a window needs {context + 1:,}: "
                f"give more text, or a context of at most {max(0, len(tokens) - 1):,}."
            )
        self.tokens, self.context, self.seed, self.order, self.vocab = tokens, context, seed, order, vocab
        self.documents = documents
        self.size = size if order == "random" else min(size, (len(tokens) - 1) // context)
        self.per_epoch = max(1, (len(tokens) - 1) // (context * self.size))
        if order == "contiguous":
            self.per_epoch = max(1, ((len(tokens) - 1) // self.size - context) // context + 1)

    def starts(self, epoch: int, position: int) -> np.ndarray:
        """Where the windows of a batch begin: (b,)."""
        rows = np.arange(self.size)
        if self.order == "random":
            drawn = uniform(self.seed, epoch, position * self.size + rows, 1)[:, 0]
            return (drawn * (len(self.tokens) - self.context)).astype(np.int64)
        row_length = (len(self.tokens) - 1) // self.size
        slack = row_length - self.per_epoch * self.context
        first = mix(self.seed, epoch) % (slack + 1)
        return rows * row_length + first + position * self.context

    def batch(self, epoch: int, position: int) -> tuple[Tensor, Tensor]:
        """The batch at one position of one epoch."""
        starts = self.starts(epoch, position)
        tokens = np.stack([self.tokens[start : start + self.context + 1] for start in starts]).astype(np.int64)
        self._check(tokens, starts)
        targets = tokens[:, 1:].copy()
        if self.documents is not None and len(self.documents) > 2:
            places = starts[:, None] + np.arange(1, self.context + 1)
            index = np.searchsorted(self.documents, places)
            first = np.asarray(self.documents)[np.minimum(index, len(self.documents) - 1)] == places
            targets[first] = IGNORED
        return torch.from_numpy(tokens[:, :-1].copy()), torch.from_numpy(targets)

    def stream(self, first: int, stop: int) -> Generator[tuple[Tensor, Tensor], None, None]:
        """Batches of steps `first` to `stop - 1`."""
        for step in range(first, stop):
            yield self.batch(*divmod(step, self.per_epoch))

    def _check(self, tokens: np.ndarray, starts: np.ndarray) -> None:
        if self.vocab is None or int(tokens.max()) < self.vocab:
            return
        row, at = np.argwhere(tokens >= self.vocab)[0]
        raise WonderlandError(
            f"Token {tokens[row, at]} at position {starts[row] + at:,} is not in the vocabulary: tokens are 0 to {self.vocab - 1}."
        )
