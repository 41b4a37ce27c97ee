"""Compiled steps: a decode program of one module, ready to run for one token after another."""

import ctypes
import functools
from array import array
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import torch
from torch import Tensor, empty_like, nn

from wonderland.fast.decode_program import CACHE, COUNTED, FRESH, SAME, Program
from wonderland.fast.guard import DTYPES, HookWatch, unobserved
from wonderland.ops import native

MOST_ROWS = 64  # above this, torch's matrix products over the whole batch are as fast

# The memory of a cache: rows, entries, width of an entry, distance from row to row, entries that fit (0: not known).
Span = tuple[int, int, int, int, int]


def allowed(rows: int, t: int, like: Tensor) -> bool:
    """Whether a compiled step may run: one token, few rows, no gradients, and nothing that `guard` excludes."""
    one_token = t == 1 and rows <= MOST_ROWS and like.dtype in DTYPES and like.is_cpu
    return one_token and not torch.is_grad_enabled() and unobserved() and native.is_plain(like)


class CompiledStep:
    """A program with its weights' addresses, valid as long as everything that the program looked at is the same object.

    It remembers the state that it returned last: continued from that very tuple, a step needs no check of the state.
    """

    __slots__ = (
        "_fixed", "_held", "_hooks", "_kinds", "_last", "_lone_count", "_names", "_owner", "_parts",
        "_pointers", "_run", "_values", "_weights", "_windowed", "caches", "dim", "dtype", "written",
    )  # fmt: skip

    def __init__(self, module: nn.Module, program: Program, written: bool, hooks: HookWatch):
        written = written and native.available("decode_step")
        self.dtype, self.dim, self.written, self._hooks = program.dtype, program.dim, written, hooks
        # A shallow copy of the module shares its attributes, this object among them, but is another owner.
        self._owner = vars(module)
        self._held = [held for held, _, _ in program.looked]
        self._names = [name for _, name, _ in program.looked]
        self._values = [value for _, _, value in program.looked]
        self._weights = [weight for weight in program.weights if weight is not None]
        self._pointers = [weight.data_ptr() for weight in self._weights]
        self._kinds = program.kinds
        self.caches = [(i, window) for i, (kind, window) in enumerate(program.kinds) if kind == CACHE]
        self._windowed = any(window is not None for _, window in self.caches)
        # A count that is the only tensor to be written can be updated in place. Several counts may share one tensor.
        self._lone_count = [kind for kind, _ in self._kinds if kind in (FRESH, COUNTED)] == [COUNTED]
        # The constant arguments of the kernel, in its order: addresses of arrays that are kept alive here, then sizes.
        codes, numbers = array("q", program.codes), array("d", program.numbers)
        weights = addresses(program.weights)
        sizes = len(program.numbers), self.dim, len(program.kinds)
        self._fixed = array("q", [*(part.buffer_info()[0] for part in (codes, numbers, weights)), *sizes])
        self._parts = codes, numbers, weights
        self._run = _function(program.dtype) if written else None
        # Of the last step: the state, its tensors, the distinct ones to be written, signatures of counts, the index of each
        # tensor among the distinct ones, the function that builds a state from tensors, the spans of caches, and the input's
        # shape. Replaced as a whole, never changed.
        self._last: Any = (None,)

    def __reduce__(self) -> Any:
        return type(None), ()  # addresses mean nothing to a copy

    def valid(self) -> bool:
        """Whether all that was looked at is the same, weights lie where they lay, and hooks were neither added nor removed."""
        same = all(map(is_, map(dict.get, self._held, self._names), self._values)) and self._hooks.unchanged()
        return (
            same
            and list(map(Tensor.data_ptr, self._weights)) == self._pointers
            and all(map(Tensor.is_contiguous, self._weights))
        )

    def belongs_to(self, module: nn.Module) -> bool:
        """Whether it was compiled from this module, and not from one that this is a shallow copy of."""
        return vars(module) is self._owner

    def continues(self, x: Any, state: Any) -> bool:
        """Whether the state is the one returned last and the input is like the last one, so that neither needs a check."""
        last = self._last
        return last[0] is state and native.is_plain(x) and last[-1] == x.shape and x.dtype == self.dtype and x.is_cpu

    def returned(self, state: Any) -> bool:
        """Whether this very state was returned last."""
        return self._last[0] is state

    def run(
        self, x: Tensor, state: Any, shape: tuple[int, ...], *, extra: Tensor | None = None, consume: bool = False
    ) -> tuple[Tensor, Any] | None:
        """One token: outputs of `shape` and the next state; None where kernels cannot read the state.

        `x` holds features, or tokens as int64; a token outside the vocabulary gives None as well. `extra` is added to the
        embedding. With `consume`, caches that have room grow in place, and a lone count is updated in place.
        """
        last, rows = self._last, shape[0]
        own = last[0] is state
        if not own:
            last = self.admit(state)
            if last is None:
                return None
        _, leaves, distinct, signatures, places, build, spans, _ = last
        in_place = own and consume and self._lone_count
        new = distinct if in_place else [empty_like(tensor) for tensor in distinct]
        after = [leaf if place < 0 else new[place] for leaf, place in zip(leaves, places, strict=True)]
        grown, cache_sizes = self._grow(leaves, after, spans, consume)
        x = x.contiguous()
        y = empty_like(x) if x.dtype == self.dtype else torch.empty(shape, dtype=self.dtype, device="cpu")
        inputs = x.data_ptr(), 0 if extra is None else extra.data_ptr(), y.data_ptr(), rows, torch.get_num_threads()
        # Addresses are read at each step: `share_memory_` moves a tensor.
        states = [*map(Tensor.data_ptr, leaves), *map(Tensor.data_ptr, after)]
        if not self.call(array("q", [*inputs, *states, *cache_sizes])):
            return None
        if not in_place:
            for place, signature in signatures:
                new[place].made_by = signature
        if self._windowed:
            self._leave_window(after, grown)
        later = build(after)
        self._last = later, after, new, signatures, places, build, grown, x.shape
        return y, later

    def _grow(
        self, leaves: list[Tensor], after: list[Tensor], spans: list[Span], consume: bool
    ) -> tuple[list[Span], list[int]]:
        """Put caches with one entry more into `after`; their spans, and the sizes that the kernel needs."""
        grown, sizes = [], []
        for (i, window), (rows, n, width, apart, room) in zip(self.caches, spans, strict=True):
            if consume and room > n:
                after[i], wider, copied = leaves[i].as_strided((rows, n + 1, width), (apart, width, 1)), apart, 0
            else:
                after[i], room, copied = longer(leaves[i], room, window, consume)
                wider = after[i].stride(0)
            grown.append((rows, n + 1, width, wider, room))
            sizes += n, apart, wider, copied
        return grown, sizes

    def _leave_window(self, after: list[Tensor], grown: list[Span]) -> None:
        """Drop the entries of caches that no later token sees."""
        for at, (i, window) in enumerate(self.caches):
            if window is not None and after[i].shape[1] >= window:
                after[i] = after[i][:, after[i].shape[1] - window + 1 :]
                grown[at] = _span(after[i])

    def call(self, arguments: "array[int]") -> bool:
        """One call of the kernel; False where a token or its position is outside its table.

        `arguments`: addresses of the input, of what is added to embeddings and of the output, rows, threads, addresses of
        the state before and after, then four sizes for each cache.
        """
        assert self._run is not None
        return not self._run(self._fixed.buffer_info()[0], arguments.buffer_info()[0])

    def admit(self, state: Any) -> Any:
        """What `run` needs to know of a state that was not returned last; None where kernels cannot read it."""
        leaves: list[Tensor] = []
        build = _builder(state, leaves)
        if len(leaves) != len(self._kinds):
            return None
        distinct, places, signatures, spans = [], [], [], []
        counts: list[tuple[list[int], str, int]] = []
        for i, (kind, about) in enumerate(self._kinds):
            leaf = leaves[i]
            dtype = self.dtype if kind in (FRESH, CACHE) else torch.int64
            if not native.is_plain(leaf) or not leaf.is_cpu or leaf.dtype != dtype:
                return None
            if kind == SAME and leaf.numel():
                return None
            if kind == CACHE:
                if leaf.stride(2) != 1 or leaf.stride(1) != leaf.shape[2]:
                    leaves[i] = leaf.contiguous()
                spans.append(_span(leaves[i]))
            elif kind != SAME:
                leaves[i] = leaf.contiguous()
            place = -1 if kind in (SAME, CACHE) else len(distinct)
            if kind == COUNTED:
                # Equal counts of modules of one class become one tensor.
                value = leaf.tolist()
                for known, signature, where in counts:
                    if known == value and (signature == about or not about):
                        place = where
                if place == len(distinct):
                    counts.append((value, about, place))
                    signatures += [(place, about)] if about else []
            places.append(place)
            if place == len(distinct):
                distinct.append(leaves[i])
        return state, leaves, distinct, signatures, places, build, spans, None


def compiled_step(
    module: nn.Module, dtype: torch.dtype, dim: int, write: Callable[[Any, Program], bool]
) -> CompiledStep | None:
    """The compiled step of a module, written by `write` when there is none yet or the module has changed; None without one."""
    step = module.__dict__.get("_compiled_step")
    if step is None or step.dtype != dtype or not step.belongs_to(module) or not step.valid():
        program, hooks = Program(dtype, dim), HookWatch(module)
        step = CompiledStep(module, program, not hooks.any and write(module, program), hooks)
        module.__dict__["_compiled_step"] = step
    return step if step.written else None


def addresses(tensors: Sequence[Tensor | None]) -> "array[int]":
    """The addresses of tensors, 0 for None."""
    return array("q", [0 if tensor is None else tensor.data_ptr() for tensor in tensors])


def longer(cache: Tensor, room: int, window: int | None, consume: bool) -> tuple[Tensor, int, int]:
    """A cache (b, n, width) with one entry more, how many entries fit into it, and 1 if the old ones must be copied.

    A consumed cache grows in place and is doubled when full. `room` is how many fit, or 0 if that is not known.
    """
    b, n, width = cache.shape
    if window is not None or not consume:
        return cache.new_empty((b, n + 1, width)), 0, 1
    if not room:
        apart = cache.stride(0)
        size = cache.untyped_storage().nbytes() // cache.element_size()
        room = apart // max(width, 1) if cache.storage_offset() + b * apart <= size else n
    if room > n:
        return cache.as_strided((b, n + 1, width), (cache.stride(0), width, 1)), room, 0
    room = max(2 * (n + 1), 16)
    return cache.new_empty((b, room, width))[:, : n + 1], room, 1


def _builder(state: Any, leaves: list[Tensor]) -> Callable[[Sequence[Tensor]], Any]:
    """Collect the tensors of a nested tuple into `leaves`; returns the function that builds such a tuple from others."""
    if all(isinstance(entry, Tensor) for entry in state):
        leaves += state
        return tuple
    place = _placer(state, leaves)
    return lambda tensors: place(iter(tensors).__next__)


def _placer(state: Any, leaves: list[Tensor]) -> Callable[[Callable[[], Tensor]], Any]:
    if isinstance(state, Tensor):
        leaves.append(state)
        return lambda take: take()
    parts = [_placer(entry, leaves) for entry in state]
    if all(isinstance(entry, Tensor) for entry in state):
        count = len(parts)
        return lambda take: tuple([take() for _ in range(count)])
    return lambda take: tuple([part(take) for part in parts])


def _span(cache: Tensor) -> Span:
    return *cache.shape, cache.stride(0), 0  # pyright: ignore[reportReturnType]


@functools.cache
def _function(dtype: torch.dtype) -> Any:
    function = getattr(native.library("decode_step"), "run_f32" if dtype == torch.float32 else "run_f64")
    function.restype, function.argtypes = ctypes.c_long, [ctypes.c_void_p] * 2
    return function
