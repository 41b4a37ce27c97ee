"""Examples: an encoded dataset, as shuffled batches for training and as ordered batches for evaluation."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core.batch import Batch
from wonderland.data.batches import Batches

CHUNK = 2048


class Examples(ABC):
    """The encoded examples of a dataset. What a part is depends on the kind of data: row numbers, a file of tokens."""

    unit = "row"

    @abstractmethod
    def shuffled(
        self,
        part: Any,
        *,
        size: int,
        seed: int,
        rows: Sequence[np.ndarray] | None = None,
        augment: Any = None,
        workers: int = 0,
    ) -> Any:
        """Batches for training: a pure function of (seed, epoch, position), whatever the number of workers.

        `rows` gives each member of an ensemble examples of its own.
        """

    @abstractmethod
    def in_order(self, part: Any, *, size: int = CHUNK, most: int | None = None) -> Iterator[Batch]:
        """Every example of a part once, or at most the first `most` (in the unit of the examples)."""

    @abstractmethod
    def count(self, part: Any) -> int:
        """How many examples a part has."""

    @abstractmethod
    def everything(self) -> Any:
        """The part that holds all examples."""

    def first(self, part: Any, count: int = 1) -> Batch:
        """The first few examples of a part, to try a model on."""
        return next(self.in_order(part, size=count))


class RowExamples(Examples):
    """Rows in memory, or read on demand; `y` holds the target of every row and `weights` its weight, None for none."""

    def __init__(
        self,
        x: Tensor | Callable[[np.ndarray], Tensor],
        y: np.ndarray | None,
        rows: int,
        weights: np.ndarray | None = None,
    ):
        self.x, self.y, self.rows, self.weights = x, y, rows, weights
        self.targets = None if y is None else torch.as_tensor(y)

    def inputs(self, rows: np.ndarray) -> Tensor:
        """Encoded rows."""
        return self.x[torch.as_tensor(rows)] if isinstance(self.x, Tensor) else self.x(rows)

    def take(self, rows: np.ndarray) -> Batch:
        """Some rows as a batch."""
        fields = {"x": self.inputs(rows)}
        return Batch(fields if self.targets is None else fields | {"y": self.targets[torch.as_tensor(rows)]})

    def shuffled(
        self,
        part: Any,
        *,
        size: int,
        seed: int,
        rows: Sequence[np.ndarray] | None = None,
        augment: Any = None,
        workers: int = 0,
    ) -> Batches:
        assert self.targets is not None, "rows without a target cannot be learned from"
        chosen = part if rows is None else rows
        weights = None if self.weights is None else torch.as_tensor(self.weights)
        options = {"augment": augment, "workers": workers, "weights": weights}
        return Batches(self.x, self.targets, size=size, seed=seed, rows=chosen, **options)

    def in_order(self, part: Any, *, size: int = CHUNK, most: int | None = None) -> Iterator[Batch]:
        part = np.asarray(part)[:most]
        return (self.take(part[first : first + size]) for first in range(0, len(part), size))

    def count(self, part: Any) -> int:
        return len(part)

    def everything(self) -> np.ndarray:
        return np.arange(self.rows)
