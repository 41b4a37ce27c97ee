"""Decode sessions: many tokens by one compiled step, with memory laid out once."""

from array import array
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.fast.compiled_step import CompiledStep, addresses
from wonderland.fast.guard import unobserved


class DecodeSession:
    """A batch of sequences that one compiled step continues, one token of each at a time.

    New values alternate between two sets of tensors; caches lie in buffers with room to grow. The state at the beginning is
    not written to; `state` is the current one, valid until the next step.
    """

    def __init__(self, step: CompiledStep, admitted: Any, rows: int, outputs: int):
        _, leaves, distinct, self._signatures, places, self._build, _, _ = admitted
        self._step = step
        self._tokens = np.zeros(rows, dtype=np.int64)
        self._logits = torch.empty(rows, outputs, dtype=step.dtype, device="cpu")
        self._caches = [_Cache(place, window, leaves[place]) for place, window in step.caches]
        banks = [[torch.empty_like(tensor) for tensor in distinct] for _ in range(2)]
        for bank in banks:
            for place, signature in self._signatures:
                bank[place].made_by = signature  # pyright: ignore[reportAttributeAccessIssue]
        written = [
            [leaf if place < 0 else bank[place] for leaf, place in zip(leaves, places, strict=True)] for bank in banks
        ]
        # Tensors and addresses of the state that is read next, of the one that is written next, and of the one after it.
        self._old, self._new, self._spare = ((tensors, addresses(tensors)) for tensors in (leaves, *written))
        inputs = self._tokens.ctypes.data, 0, self._logits.data_ptr(), rows, torch.get_num_threads()
        self._states_at, self._caches_at = len(inputs), len(inputs) + 2 * len(leaves)
        self._arguments = array("q", [*inputs, *[0] * (2 * len(leaves) + 4 * len(self._caches))])

    @classmethod
    def begin(cls, step: CompiledStep, state: Any, rows: int, outputs: int) -> "DecodeSession | None":
        """A session that starts from a state; None where kernels cannot read it."""
        admitted = step.admit(state)
        return None if admitted is None else cls(step, admitted, rows, outputs)

    def step(self, tokens: list[int]) -> Tensor | None:
        """The logits (rows, outputs) after one more token of each row; the next step overwrites them.

        None, and nothing has changed, where the model has changed, operators are observed (see `guard`), or a token or its
        position is outside its table.
        """
        if torch.is_grad_enabled() or not unobserved() or not self._step.valid():
            return None
        self._tokens[:] = tokens
        arguments, before, after, at = self._arguments, self._old[1], self._new[1], self._caches_at
        for cache in self._caches:
            before[cache.place] = after[cache.place] = cache.address()
            arguments[at], arguments[at + 1], arguments[at + 2] = cache.length, cache.apart, cache.apart
            at += 4
        arguments[self._states_at - 1] = torch.get_num_threads()
        arguments[self._states_at : self._caches_at] = before + after
        if not self._step.call(arguments):
            return None
        for cache in self._caches:
            cache.appended()
        # The set that was read is written next; the tensors of the first state are never written.
        self._old, self._new, self._spare = self._new, self._spare, self._new
        return self._logits

    @property
    def state(self) -> Any:
        """The current state, nested as the first one was."""
        leaves = list(self._old[0])
        for cache in self._caches:
            leaves[cache.place] = cache.entries
        return self._build(leaves)


class _Cache:
    """Entries (b, n, width) in a buffer with room for more; with a window, the oldest entry is dropped once nothing sees it."""

    def __init__(self, place: int, window: int | None, entries: Tensor):
        self.place, self._window = place, window
        self._start, self.length = 0, entries.shape[1]
        self._allocate(entries)

    @property
    def entries(self) -> Tensor:
        return self._buffer[:, self._start : self._start + self.length]

    def address(self) -> int:
        """The address of the first entry, in a buffer with room for one more after the last."""
        if self._start + self.length == self._size:
            self._allocate(self.entries)
        return self._address + self._start * self._entry

    def appended(self) -> None:
        """One entry was added."""
        self.length += 1
        if self._window is not None and self.length >= self._window:
            self._start, self.length = self._start + self.length - self._window + 1, self._window - 1

    def _allocate(self, entries: Tensor) -> None:
        b, n, width = entries.shape
        self._size = max(2 * (n + 1), 16)
        buffer = entries.new_empty(b, self._size, width)
        buffer[:, :n] = entries
        self._buffer, self._start, self._address = buffer, 0, buffer.data_ptr()
        self._entry, self.apart = width * buffer.element_size(), self._size * width
