"""Batches: a pure function of (seed, epoch, position), so that training can be interrupted and resumed at any step."""

import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from wonderland.core import WonderlandError, mix, permutation, uniform
from wonderland.core.batch import Batch


class Batches:
    """Shuffled batches with the fields x and y (and weight, where rows have weights), from rows in memory or from a function that reads them on demand.

    The order of epoch e is a permutation seeded by (seed, e); the randomness of an example is seeded by (seed, e, its
    index), independent of the rest of its batch and of the worker that loads it. The last incomplete batch of an epoch is left out; which rows
    those are changes with each epoch.

    Args:
        x: tensor with the rows first, or a function from row indices to such a tensor.
        y: target of every row.
        size: rows in a batch.
        rows: which rows to use; a list of several index arrays gives each member of an ensemble batches of its own,
            x (m, b, ...) and y (m, b), with the examples on axis 1.
        augment: called with a batch and its random numbers, `augment.draws` for each example, from `augment.numbers(seed,
            epoch, index)` where it has that method.
        workers: processes that prepare batches in advance.
        weights: weight of every row; None for equal ones.

    >>> batches = Batches(torch.arange(6.0)[:, None], torch.arange(6), size=2, seed=0)
    >>> batches.per_epoch, batches.batch(0, 0)["x"].shape
    (3, torch.Size([2, 1]))
    """

    def __init__(
        self,
        x: Tensor | Callable[[np.ndarray], Tensor],
        y: Tensor,
        *,
        size: int,
        seed: int = 0,
        rows: np.ndarray | Sequence[np.ndarray] | None = None,
        augment: Any = None,
        workers: int = 0,
        weights: Tensor | None = None,
    ):
        self.weights = weights
        self.x, self.y, self.seed, self.augment, self.workers = x, y, seed, augment, workers
        if rows is None or isinstance(rows, np.ndarray):
            self.members, self.rows = 0, [np.arange(len(y)) if rows is None else rows]
        else:
            self.members, self.rows = len(rows), list(rows)
        fewest = min(map(len, self.rows))
        if not fewest or size < 1:
            raise WonderlandError(
                f"Batches of {size} from {fewest} rows cannot be made: there must be at least one of each."
            )
        self.size = min(size, fewest)
        self.per_epoch = fewest // self.size
        self._epoch = -1
        self._orders: list[np.ndarray] = []

    def indices(self, epoch: int, position: int) -> np.ndarray:
        """Rows of one batch: (b,), or (m, b) for an ensemble."""
        selected = slice(position * self.size, (position + 1) * self.size)
        index = np.stack([rows[self._order(epoch, member)[selected]] for member, rows in enumerate(self.rows)])
        return index if self.members else index[0]

    def batch(self, epoch: int, position: int) -> Batch:
        """The batch at one position of one epoch."""
        index = self.indices(epoch, position)
        flat = torch.from_numpy(index.reshape(-1))
        x = self.x.index_select(0, flat) if isinstance(self.x, Tensor) else self.x(index.reshape(-1))
        if self.augment is not None:
            x = self.augment(x, random_numbers(self.augment, self.seed, epoch, index.reshape(-1)))
        fields = {"x": x.unflatten(0, index.shape), "y": self.y.index_select(0, flat).unflatten(0, index.shape)}
        if self.weights is not None:
            fields["weight"] = self.weights.index_select(0, flat).unflatten(0, index.shape)
        return Batch(fields, axis=1 if self.members else 0)

    def stream(self, first: int, stop: int) -> Generator[Batch, None, None]:
        """Batches of steps `first` to `stop - 1`, each prepared while the one before it is being used."""
        if not self.workers:
            yield from self._prefetch(first, stop)
            return
        loader = DataLoader(
            _ByStep(self),
            sampler=range(first, stop),
            batch_size=None,
            num_workers=self.workers,
            prefetch_factor=4,
            worker_init_fn=_ignore_interrupt,
            generator=torch.Generator(),  # without it the loader would draw from the global generator, which training uses
            multiprocessing_context="fork",
        )
        yield from loader

    def _prefetch(self, first: int, stop: int) -> Generator[Batch, None, None]:
        """Batches from a background thread, one step in advance; tensor operations release the GIL, so both run at once."""
        with ThreadPoolExecutor(1, "batches") as pool:
            pending = pool.submit(self.batch, *divmod(first, self.per_epoch)) if first < stop else None
            for step in range(first + 1, stop + 1):
                assert pending is not None
                ready = pending.result()
                if step < stop:
                    pending = pool.submit(self.batch, *divmod(step, self.per_epoch))
                yield ready

    def _order(self, epoch: int, member: int) -> np.ndarray:
        if self._epoch != epoch:
            self._epoch = epoch
            self._orders = [permutation(mix(self.seed, i), epoch, len(rows)) for i, rows in enumerate(self.rows)]
        return self._orders[member]


def random_numbers(augment: Any, seed: int, epoch: int, index: np.ndarray) -> np.ndarray:
    """The numbers that an augmentation changes examples by: (b, draws), its own where it has a method `numbers`."""
    own = getattr(augment, "numbers", None)
    return uniform(seed, epoch, index, augment.draws) if own is None else own(seed, epoch, index)


class _ByStep(Dataset):
    """Batches indexed by step number, for the workers of a DataLoader."""

    def __init__(self, batches: Batches):
        self.batches = batches

    def __getitem__(self, step: int) -> Batch:
        return self.batches.batch(*divmod(step, self.batches.per_epoch))


def _ignore_interrupt(number: int) -> None:
    """Leave Ctrl-C to the main process, which finishes its step first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
