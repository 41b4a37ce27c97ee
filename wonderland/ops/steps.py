"""Programs of single steps: one token through a whole model in one call, where dispatch would cost more than arithmetic."""

import ctypes
import functools
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
    return (
        t == 1 and rows <= MOST_ROWS and like.dtype in (torch.float32, torch.float64) and like.is_cpu and unobserved()
    )


def unobserved() -> bool:
    """Whether nobody follows what is computed: no gradients, no compiler, no record, no mode of torch's."""
    return (
        not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and native.available()
        and not native.recorded()
        and not native.transformed()
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
        return isinstance(weight, Tensor) and weight.dtype == self.dtype and weight.is_contiguous() and weight.is_cpu

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
        "_codes", "_given", "_held", "_kinds", "_length", "_listeners", "_memo", "_names", "_numbers", "_pointers", "_values",
        "_weights", "_windowed", "caches", "dim", "dtype", "written",
    )  # fmt: skip

    def __init__(self, program: Program, written: bool, listeners: "Listeners"):
        self.dtype, self.dim, self.written, self._listeners = program.dtype, program.dim, written, listeners
        self._held = [held for held, _, _ in program.looked]
        self._names = [name for _, name, _ in program.looked]
        self._values = [value for _, _, value in program.looked]
        self._given = [weight for weight in program.weights if weight is not None]
        self._pointers = [weight.data_ptr() for weight in self._given]
        self._weights = address_list(program.weights)
        self._codes = (ctypes.c_long * len(program.codes))(*program.codes)
        self._numbers = (ctypes.c_double * len(program.numbers))(*program.numbers)
        self._length = len(program.numbers)
        self._kinds = program.kinds
        self.caches = [(i, window) for i, (kind, window) in enumerate(program.kinds) if kind == CACHE]
        self._windowed = any(window is not None for _, window in self.caches)
        # Of the state it gave last: the state, its tensors, their addresses, those to be written anew, whose counts they
        # are, where each tensor of the state is found among them, what builds a state of tensors, the room in caches, and
        # the shape of the input. Never changed, only replaced.
        self._memo: Any = (None,)

    def __reduce__(self) -> Any:
        return type(None), ()  # addresses are of no use to a copy

    def valid(self) -> bool:
        """Whether everything looked at is what it was, and lies where it lay, and as many listen as did."""
        same = all(map(is_, map(dict.get, self._held, self._names), self._values)) and self._listeners.same()
        return same and list(map(Tensor.data_ptr, self._given)) == self._pointers

    @property
    def shape(self) -> Any:
        """The shape of what the last run was given."""
        return self._memo[-1] if self._memo[0] is not None else None

    def knows(self, state: Any) -> bool:
        """Whether it gave this very state, which needs no check then."""
        return self._memo[0] is state

    def run(
        self, x: Tensor, state: Any, shape: tuple[int, ...], *, extra: Tensor | None = None, consume: bool = False
    ) -> tuple[Tensor, Any] | None:
        """One token: outputs of the shape asked for and the next state; None where the state has another form.

        `x` holds features, or tokens as int64; a token outside the vocabulary gives None as well. With `consume`, caches
        that have room for one entry more grow in place.
        """
        memo = self._memo
        if memo[0] is not state:
            memo = self.admit(state)
            if memo is None:
                return None
        _, leaves, before, unique, signs, places, build, rooms, _ = memo
        new = [empty_like(tensor) for tensor in unique]
        after = [leaf if place < 0 else new[place] for leaf, place in zip(leaves, places, strict=True)]
        now: list[int] = []
        rooms = rooms.copy()
        for i, window in self.caches:
            after[i], rooms[i], copied = longer(leaves[i], rooms[i], window, consume)
            now += leaves[i].shape[1], leaves[i].stride(0), after[i].stride(0), copied
        addresses = address_list(after)
        y = torch.empty(shape, dtype=self.dtype)
        x = x.contiguous()
        given = x.data_ptr(), None if extra is None else extra.data_ptr()
        if not self.call(*given, before, addresses, (ctypes.c_long * len(now))(*now), y.data_ptr(), shape[0]):
            return None
        for place, by in signs:
            new[place].made_by = by
        if self._windowed:
            for i, window in self.caches:
                if window is not None and after[i].shape[1] >= window:
                    after[i], rooms[i] = after[i][:, after[i].shape[1] - window + 1 :], 0
            addresses = address_list(after)
        later = build(iter(after).__next__)
        self._memo = later, after, addresses, new, signs, places, build, rooms, x.shape
        return y, later

    def call(self, given: int, extra: int | None, before: Any, after: Any, now: Any, result: int, rows: int) -> bool:
        """One token through the kernels, all by address; False where a token or its place is in no table."""
        wrong = _function(self.dtype)(
            given,
            extra,
            self._codes,
            self._numbers,
            self._weights,
            before,
            after,
            now,
            result,
            self._length,
            rows,
            self.dim,
            torch.get_num_threads(),
        )
        return not wrong

    def admit(self, state: Any) -> Any:
        """What has to be known of a state that was not given last; None where kernels cannot read it."""
        leaves: list[Tensor] = []
        build = _builder(state, leaves)
        if len(leaves) != len(self._kinds):
            return None
        unique, places, signs, rooms = [], [], [], {}
        counts: list[tuple[list[int], str, int]] = []
        for i, (kind, about) in enumerate(self._kinds):
            leaf = leaves[i]
            if not leaf.is_cpu or leaf.dtype != (self.dtype if kind in (FRESH, CACHE) else torch.int64):
                return None
            if kind == SAME and leaf.numel():
                return None
            if kind == CACHE:
                rooms[i] = 0
                if leaf.stride(2) != 1 or leaf.stride(1) != leaf.shape[2]:
                    leaves[i] = leaf.contiguous()
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
        return state, leaves, address_list(leaves), unique, signs, places, build, rooms, None


def routine(module: nn.Module, dtype: torch.dtype, dim: int, write: Callable[[Program], bool]) -> Routine | None:
    """The routine of a module, written down by `write` when there is none yet or the module has changed."""
    found = module.__dict__.get("_routine")
    if found is None or found.dtype != dtype or not found.valid():
        program, listeners = Program(dtype, dim), Listeners(module)
        # Kernels would go past whoever listens.
        found = module.__dict__["_routine"] = Routine(program, not listeners.any and write(program), listeners)
    return found if found.written else None


def address_list(tensors: Sequence[Tensor | None]) -> Any:
    """Where tensors lie, as kernels take it."""
    return (ctypes.c_void_p * len(tensors))(*[None if tensor is None else tensor.data_ptr() for tensor in tensors])


def _builder(state: Any, leaves: list[Tensor]) -> Callable[[Callable[[], Tensor]], Any]:
    """Collect the tensors of a nested tuple, and learn to put others in their places."""
    if isinstance(state, Tensor):
        leaves.append(state)
        return lambda take: take()
    parts = [_builder(entry, leaves) for entry in state]
    if all(isinstance(entry, Tensor) for entry in state):
        count = len(parts)
        return lambda take: tuple([take() for _ in range(count)])
    return lambda take: tuple([part(take) for part in parts])


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
        return cache.as_strided((b, n + 1, width), (room * width, width, 1)), room, 0
    room = max(2 * (n + 1), 16)
    return cache.new_empty((b, room, width))[:, : n + 1], room, 1


@functools.cache
def _function(dtype: torch.dtype) -> Any:
    found = getattr(native.library("steps"), "run_f32" if dtype == torch.float32 else "run_f64")
    found.restype = ctypes.c_long
    found.argtypes = [ctypes.c_void_p] * 9 + [ctypes.c_long] * 4
    return found
