"""Many steps of one program in a row: memory is laid out once, so that a token costs little beside its arithmetic."""

from array import array
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.ops.steps import Routine, addresses, unobserved


class Walk:
    """A batch of sequences on its way through a routine, one token of each at a time.

    What is written anew at each step alternates between two banks of memory; caches lie in buffers with room to grow. The
    state it begins with is not written to; `state` is the one reached, good until the next step.
    """

    def __init__(self, routine: Routine, admitted: Any, rows: int, outputs: int):
        _, leaves, unique, self._signs, places, self._build, _, _ = admitted
        self._routine = routine
        self._tokens = np.zeros(rows, dtype=np.int64)
        self._logits = torch.empty(rows, outputs, dtype=routine.dtype, device="cpu")
        self._caches = [_Cache(place, window, leaves[place]) for place, window in routine.caches]
        banks = [[torch.empty_like(tensor) for tensor in unique] for _ in range(2)]
        for bank in banks:
            for place, by in self._signs:
                bank[place].made_by = by  # pyright: ignore[reportAttributeAccessIssue]
        written = [
            [leaf if place < 0 else bank[place] for leaf, place in zip(leaves, places, strict=True)] for bank in banks
        ]
        # What was read last, what is written next, and what comes after that: tensors and their addresses.
        self._old, self._new, self._spare = ((tensors, addresses(tensors)) for tensors in (leaves, *written))
        given = self._tokens.ctypes.data, 0, self._logits.data_ptr(), rows, torch.get_num_threads()
        self._states_at, self._caches_at = len(given), len(given) + 2 * len(leaves)
        self._turn = array("q", [*given, *[0] * (2 * len(leaves) + 4 * len(self._caches))])

    @classmethod
    def begin(cls, routine: Routine, state: Any, rows: int, outputs: int) -> "Walk | None":
        """From a state that `Routine.run` could go on with; None where kernels cannot read it."""
        admitted = routine.admit(state)
        return None if admitted is None else cls(routine, admitted, rows, outputs)

    def step(self, tokens: list[int]) -> Tensor | None:
        """The outputs (rows, outputs) after one token more of each row; the next step writes over them.

        None, and nothing has changed, where the model is no longer what it was, somebody follows what is computed, or a
        token or its place is in no table.
        """
        if not unobserved() or not self._routine.valid():
            return None
        self._tokens[:] = tokens
        turn, before, after, at = self._turn, self._old[1], self._new[1], self._caches_at
        for cache in self._caches:
            before[cache.place] = after[cache.place] = cache.room()
            turn[at], turn[at + 1], turn[at + 2] = cache.length, cache.apart, cache.apart
            at += 4
        turn[self._states_at - 1] = torch.get_num_threads()
        turn[self._states_at : self._caches_at] = before + after
        if not self._routine.call(turn):
            return None
        for cache in self._caches:
            cache.grew()
        # The bank just read is written next; the state begun with is read once and left.
        self._old, self._new, self._spare = self._new, self._spare, self._new
        return self._logits

    @property
    def state(self) -> Any:
        """The state reached, in the form of the one begun with."""
        leaves = list(self._old[0])
        for cache in self._caches:
            leaves[cache.place] = cache.entries
        return self._build(leaves)


class _Cache:
    """Entries (b, n, width) in a buffer with room for more; of a window, the oldest entry is dropped when it is left."""

    def __init__(self, place: int, window: int | None, entries: Tensor):
        self.place, self._window = place, window
        self._start, self.length = 0, entries.shape[1]
        self._lay(entries)

    @property
    def entries(self) -> Tensor:
        return self._buffer[:, self._start : self._start + self.length]

    def room(self) -> int:
        """The address of the first entry, with room for one more after the last."""
        if self._start + self.length == self._size:
            self._lay(self.entries)
        return self._address + self._start * self._entry

    def grew(self) -> None:
        """One entry was added."""
        self.length += 1
        if self._window is not None and self.length >= self._window:
            self._start, self.length = self._start + self.length - self._window + 1, self._window - 1

    def _lay(self, entries: Tensor) -> None:
        b, n, width = entries.shape
        self._size = max(2 * (n + 1), 16)
        buffer = entries.new_empty(b, self._size, width)
        buffer[:, :n] = entries
        self._buffer, self._start, self._address = buffer, 0, buffer.data_ptr()
        self._entry, self.apart = width * buffer.element_size(), self._size * width
