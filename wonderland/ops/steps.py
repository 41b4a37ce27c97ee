"""Programs of single steps: one token through a whole model in one call, where dispatch would cost more than arithmetic."""

import ctypes
import functools
from array import array
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import contains, is_
from typing import Any

import torch
from torch import Tensor, empty_like, nn
from torch.nn.modules import module as everywhere

from wonderland.ops import native

MOST_ROWS = 64  # above this, matrix products of the whole batch are as good
EMBED, LAYER_NORM, RMS_NORM, COPY, BACK, MAMBA, RWKV_TIME, RWKV_CHANNEL, ATTENTION, HIDDEN, RECURRENT, COUNT = range(12)
FINISH, HEAD = 12, 13
CELLS = ("rnn", "lstm", "gru_after", "gru_before", "ligru")
ACTIVATIONS = ("identity", "relu", "squared_relu", "sigmoid", "silu", "tanh", "gelu", "gelu_tanh")
# What becomes of a tensor of the state: written anew, handed on, counted up, or made longer by one entry.
FRESH, SAME, COUNTED, CACHE = range(4)

# How a cache lies: rows, entries, their width, the distance from row to row, and for how many there is room; 0: not known.
Span = tuple[int, int, int, int, int]

# Plain dispatcher entries: a custom_op costs 15 microseconds a call, as much as the step itself.
_LIBRARY = torch.library.Library("wonderland", "FRAGMENT")


def entry(schema: str, run: Callable[..., Any], shapes: Callable[..., Any]) -> Any:
    """A kernel without derivatives as an entry of torch's dispatcher."""
    name = schema.split("(")[0]
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, run, "CPU")
    torch.library.register_fake(f"wonderland::{name}", shapes, lib=_LIBRARY)
    return getattr(torch.ops.wonderland, name).default


def fits(rows: int, t: int, like: Tensor) -> bool:
    """Whether a program may take over: one token, not too many rows, no gradients, float32 or float64 on the CPU."""
    fitting = t == 1 and rows <= MOST_ROWS and like.dtype in (torch.float32, torch.float64) and like.is_cpu
    return fitting and unobserved() and native.bare(like)


def unobserved() -> bool:
    """Whether nobody follows what is computed: no gradients, no compiler, no record, no mode of torch's."""
    return (
        not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and native.available()
        and not native.watched()
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._len_torch_dispatch_stack()  # whoever listens to the dispatcher hears of operations
    )


class Program:
    """Instructions for one token of any number of sequences: a stream of width `dim` that parts read through a branch and
    add to.

    It is written down once and then run for each token. Parts write themselves down with `add`, read what they depend on
    with `look`, so that a change of it is noticed, and say with `keep` what becomes of each tensor of their state, in the
    order of the state. One that has no such form answers False, and the whole is then done without.
    """

    def __init__(self, dtype: torch.dtype, dim: int):
        self.dtype, self.dim = dtype, dim
        self.codes: list[int] = []
        self.numbers: list[float] = []
        self.weights: list[Tensor | None] = []
        self.looked: list[tuple[dict[str, Any], str, Any]] = []
        self.kinds: list[tuple[int, Any]] = []

    def add(
        self, code: int, sizes: Sequence[int] = (), weights: Sequence[Tensor | None] = (), number: float = 0.0
    ) -> None:
        """One instruction, with the weights that it reads."""
        self.codes += (code, len(sizes), *sizes)
        self.numbers.append(number)
        self.weights += weights

    def look(self, holder: Any, name: str) -> Any:
        """An attribute of a module, or an entry of one of its dictionaries; the program ends when it becomes another."""
        held = vars(holder) if isinstance(holder, nn.Module) else holder
        value = held.get(name)
        self.looked.append((held, name, value))
        return value

    def keep(self, *kinds: int, about: Any = None) -> int:
        """Take on the next tensors of the state; the place of the first is what kernels find them by."""
        first = len(self.kinds)
        self.kinds += [(kind, about) for kind in kinds]
        return first

    def count(self, by: str) -> None:
        """Take on a count of tokens, which grows by one, and say whose it is."""
        self.add(COUNT, (self.keep(COUNTED, about=by),))

    def matrices(self, module: nn.Module, linear: tuple[str, ...], own: tuple[str, ...] = ()) -> list[Tensor] | None:
        """Weights of a module's linear layers, then its own; None if one is something else by now, such as an adapter."""
        found = []
        for name in linear:
            child = self.look(module._modules, name)
            if type(child) is not nn.Linear:
                return None
            found.append(self.look(child._parameters, "weight"))
        for name in own:
            found.append(self.look(module._parameters, name))
        return None if any(not self.reads(weight) for weight in found) else found

    def biases(self, module: nn.Module, linear: tuple[str, ...]) -> list[Tensor | None]:
        """Biases of linear layers, where they have one."""
        return [self.look(module._modules[name]._parameters, "bias") for name in linear]  # pyright: ignore

    def reads(self, weight: Any) -> bool:
        """Whether kernels can read a weight as it lies."""
        return native.bare(weight) and weight.dtype == self.dtype and weight.is_contiguous() and weight.is_cpu

    def rests(self, module: nn.Module, *chances: str) -> bool:
        """Whether nothing is dropped: the module is not in training, or its chances to drop are 0."""
        dropped = [self.look(module, name) for name in chances]
        return not (self.look(module, "training") and any(dropped))

    def alone(self) -> None:
        """Begin a program of one part: its input is the branch, and the stream is empty."""
        self.add(COPY, (1,))


class Listeners:
    """Who waits to be called when a part of a module is: hooks, and forwards put in the place of a module's own."""

    def __init__(self, module: nn.Module):
        inner = list(module.modules())
        self._hooks = [hooks for one in inner for hooks in (one._forward_hooks, one._forward_pre_hooks)]
        self._hooks += everywhere._global_forward_hooks, everywhere._global_forward_pre_hooks
        self._held = [vars(one) for one in inner]
        self.any = self._found()

    def _found(self) -> bool:
        return any(self._hooks) or any(map(contains, self._held, repeat("forward")))

    def same(self) -> bool:
        """Whether there are some now if there were, and none if there were none."""
        return self._found() == self.any


class Routine:
    """A program ready to run, as long as what it was written from stays as it is."""

    __slots__ = (
        "_fixed", "_given", "_held", "_kinds", "_listeners", "_lone_count", "_memo", "_names", "_owner", "_parts", "_pointers",
        "_run", "_values", "_windowed", "caches", "dim", "dtype", "written",
    )  # fmt: skip

    def __init__(self, module: nn.Module, program: Program, written: bool, listeners: Listeners):
        self.dtype, self.dim, self.written, self._listeners = program.dtype, program.dim, written, listeners
        # A shallow copy of the module holds this routine too, and is not what it was written from.
        self._owner = vars(module)
        self._held = [held for held, _, _ in program.looked]
        self._names = [name for _, name, _ in program.looked]
        self._values = [value for _, _, value in program.looked]
        self._given = [weight for weight in program.weights if weight is not None]
        self._pointers = [weight.data_ptr() for weight in self._given]
        self._kinds = program.kinds
        self.caches = [(i, window) for i, (kind, window) in enumerate(program.kinds) if kind == CACHE]
        self._windowed = any(window is not None for _, window in self.caches)
        # One count is all that is written anew: it can be counted up where it lies. Several may be one tensor.
        self._lone_count = [kind for kind, _ in self._kinds if kind in (FRESH, COUNTED)] == [COUNTED]
        # What is the same at each step, in the order in which the kernel reads it: addresses of parts that are kept here, sizes.
        codes, numbers = array("q", program.codes), array("d", program.numbers)
        weights = addresses(program.weights)
        sizes = len(program.numbers), self.dim, len(program.kinds)
        self._fixed = array("q", [*(part.buffer_info()[0] for part in (codes, numbers, weights)), *sizes])
        self._parts = codes, numbers, weights
        self._run = _function(program.dtype) if written else None
        # Of the state it gave last: the state, its tensors, those to be written anew, whose counts they are, where each
        # tensor of the state is found among them, what builds a state of tensors, how its caches lie, and the shape of
        # the input. Never changed, only replaced.
        self._memo: Any = (None,)

    def __reduce__(self) -> Any:
        return type(None), ()  # addresses are of no use to a copy

    def valid(self) -> bool:
        """Whether everything looked at is what it was, and lies as it lay, and as many listen as did."""
        same = all(map(is_, map(dict.get, self._held, self._names), self._values)) and self._listeners.same()
        return (
            same
            and list(map(Tensor.data_ptr, self._given)) == self._pointers
            and all(map(Tensor.is_contiguous, self._given))
        )

    def of(self, module: nn.Module) -> bool:
        """Whether it was written from this very module."""
        return vars(module) is self._owner

    def goes_on(self, x: Any, state: Any) -> bool:
        """Whether an input is like the last one and the state the very one it gave, so that neither needs a check."""
        memo = self._memo
        return memo[0] is state and native.bare(x) and memo[-1] == x.shape and x.dtype == self.dtype and x.is_cpu

    def knows(self, state: Any) -> bool:
        """Whether it gave this very state, which needs no check then."""
        return self._memo[0] is state

    def run(
        self, x: Tensor, state: Any, shape: tuple[int, ...], *, extra: Tensor | None = None, consume: bool = False
    ) -> tuple[Tensor, Any] | None:
        """One token: outputs of the shape asked for and the next state; None where the state has another form.

        `x` holds features, or tokens as int64; a token outside the vocabulary gives None as well. With `consume`, caches
        that have room for one entry more grow in place, and so does a count that is alone.
        """
        memo, rows = self._memo, shape[0]
        own = memo[0] is state
        if not own:
            memo = self.admit(state)
            if memo is None:
                return None
        _, leaves, unique, signs, places, build, spans, _ = memo
        in_place = own and consume and self._lone_count
        new = unique if in_place else [empty_like(tensor) for tensor in unique]
        after = [leaf if place < 0 else new[place] for leaf, place in zip(leaves, places, strict=True)]
        grown, now = self._grow(leaves, after, spans, consume)
        x = x.contiguous()
        y = empty_like(x) if x.dtype == self.dtype else torch.empty(shape, dtype=self.dtype, device="cpu")
        given = x.data_ptr(), 0 if extra is None else extra.data_ptr(), y.data_ptr(), rows, torch.get_num_threads()
        # Asked for anew: a state that was shared with another process lies elsewhere since.
        states = [*map(Tensor.data_ptr, leaves), *map(Tensor.data_ptr, after)]
        if not self.call(array("q", [*given, *states, *now])):
            return None
        if not in_place:
            for place, by in signs:
                new[place].made_by = by
        if self._windowed:
            self._forget(after, grown)
        later = build(after)
        self._memo = later, after, new, signs, places, build, grown, x.shape
        return y, later

    def _grow(
        self, leaves: list[Tensor], after: list[Tensor], spans: list[Span], consume: bool
    ) -> tuple[list[Span], list[int]]:
        """Put caches with one entry more among the tensors after the step; how they lie then, and what the kernel is told."""
        grown, now = [], []
        for (i, window), (rows, n, width, apart, room) in zip(self.caches, spans, strict=True):
            if consume and room > n:
                after[i], wider, copied = leaves[i].as_strided((rows, n + 1, width), (apart, width, 1)), apart, 0
            else:
                after[i], room, copied = longer(leaves[i], room, window, consume)
                wider = after[i].stride(0)
            grown.append((rows, n + 1, width, wider, room))
            now += n, apart, wider, copied
        return grown, now

    def _forget(self, after: list[Tensor], grown: list[Span]) -> None:
        """Cut caches to what their windows still show."""
        for at, (i, window) in enumerate(self.caches):
            if window is not None and after[i].shape[1] >= window:
                after[i] = after[i][:, after[i].shape[1] - window + 1 :]
                grown[at] = _span(after[i])

    def call(self, turn: "array[int]") -> bool:
        """One token through the kernels: the addresses of what is given, of what is added to embeddings and of the result,
        rows, threads, then the addresses of the state before and after, then how caches lie. False where a token or its
        place is in no table."""
        assert self._run is not None
        return not self._run(self._fixed.buffer_info()[0], turn.buffer_info()[0])

    def admit(self, state: Any) -> Any:
        """What has to be known of a state that was not given last; None where kernels cannot read it."""
        leaves: list[Tensor] = []
        build = _builder(state, leaves)
        if len(leaves) != len(self._kinds):
            return None
        unique, places, signs, spans = [], [], [], []
        counts: list[tuple[list[int], str, int]] = []
        for i, (kind, about) in enumerate(self._kinds):
            leaf = leaves[i]
            if (
                not native.bare(leaf)
                or not leaf.is_cpu
                or leaf.dtype != (self.dtype if kind in (FRESH, CACHE) else torch.int64)
            ):
                return None
            if kind == SAME and leaf.numel():
                return None
            if kind == CACHE:
                if leaf.stride(2) != 1 or leaf.stride(1) != leaf.shape[2]:
                    leaves[i] = leaf.contiguous()
                spans.append(_span(leaves[i]))
            elif kind != SAME:
                leaves[i] = leaf.contiguous()
            place = -1 if kind in (SAME, CACHE) else len(unique)
            if kind == COUNTED:
                # Modules of one kind that have seen as many tokens share their count from here on.
                value = leaf.tolist()
                for known, by, where in counts:
                    if known == value and (by == about or not about):
                        place = where
                if place == len(unique):
                    counts.append((value, about, place))
                    signs += [(place, about)] if about else []
            places.append(place)
            if place == len(unique):
                unique.append(leaves[i])
        return state, leaves, unique, signs, places, build, spans, None


def routine(module: nn.Module, dtype: torch.dtype, dim: int, write: Callable[[Program], bool]) -> Routine | None:
    """The routine of a module, written down by `write` when there is none yet or the module has changed."""
    found = module.__dict__.get("_routine")
    if found is None or found.dtype != dtype or not found.of(module) or not found.valid():
        program, listeners = Program(dtype, dim), Listeners(module)
        # Kernels would go past whoever listens.
        found = module.__dict__["_routine"] = Routine(module, program, not listeners.any and write(program), listeners)
    return found if found.written else None


def addresses(tensors: Sequence[Tensor | None]) -> "array[int]":
    """Where tensors lie, as kernels take it."""
    return array("q", [0 if tensor is None else tensor.data_ptr() for tensor in tensors])


def _builder(state: Any, leaves: list[Tensor]) -> Callable[[Sequence[Tensor]], Any]:
    """Collect the tensors of a nested tuple, and learn to put others in their places."""
    if all(isinstance(entry, Tensor) for entry in state):
        leaves += state
        return tuple
    put = _placer(state, leaves)
    return lambda tensors: put(iter(tensors).__next__)


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


def longer(cache: Tensor, room: int, window: int | None, consume: bool) -> tuple[Tensor, int, int]:
    """A cache (b, n, width) with one entry more, for how many it has room, and whether the old ones must be copied there.

    Consumed caches grow in place, and keep room for as many entries again; `room` is what is known of it, or 0.
    """
    b, n, width = cache.shape
    if window is not None or not consume:
        return cache.new_empty((b, n + 1, width)), 0, 1
    if not room:
        apart = cache.stride(0)
        held = cache.untyped_storage().nbytes() // cache.element_size()
        room = apart // max(width, 1) if cache.storage_offset() + b * apart <= held else n
    if room > n:
        return cache.as_strided((b, n + 1, width), (cache.stride(0), width, 1)), room, 0
    room = max(2 * (n + 1), 16)
    return cache.new_empty((b, room, width))[:, : n + 1], room, 1


@functools.cache
def _function(dtype: torch.dtype) -> Any:
    found = getattr(native.library("steps"), "run_f32" if dtype == torch.float32 else "run_f64")
    found.restype, found.argtypes = ctypes.c_long, [ctypes.c_void_p] * 2
    return found
