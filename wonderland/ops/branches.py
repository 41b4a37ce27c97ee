"""Branches of residual blocks as kernels: how one is described to C++, and many run one after another in one pass."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wonderland.ops import native

TENSORS = (
    "gain", "shift", "inward", "inward_bias", "outward", "outward_bias", "table", "x", "y", "kept", "said", "sums", "facts",
    "slopes",
)  # fmt: skip
REALS = ("scale", "eps")
NUMBERS = ("attends", "centred", "width", "some", "activation", "heads", "kv", "d", "causal", "turned", "half")
SOME = 128  # rows at a time: what is made of them stays in a core's cache
MANY = 8  # sequences a thread from which on it hardly matters that one thread may have one more than another
ROOM = 1 << 26  # bytes that the slopes of weights may take, which each further thread sums for itself


class Form(ctypes.Structure):
    """The fields of `struct Branch` in kernels/branch.h, in its order."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in TENSORS),
        *((name, ctypes.c_double) for name in REALS),
        *((name, ctypes.c_long) for name in NUMBERS),
    ]


class Branch(NamedTuple):
    """One branch, ready to run: its form, and the tensors that have to live until it has."""

    form: Form
    tensors: tuple[Tensor | None, ...]


class Kind(NamedTuple):
    """What a kind of branch can do, apart from running.

    `op` is its operator for whoever listens to the dispatcher; it takes x, weights, settings and whether a backward pass may
    come, and gives y and what that pass needs. `there(y, x, *weights, *settings, keeps)` describes it and gives what is kept,
    `back(x, weights, kept, settings)` describes its way back and gives where the slopes of its weights will be.
    """

    op: Any
    there: Callable[..., tuple[Branch, tuple[Tensor, ...]]]
    back: Callable[..., tuple[Branch, Tensor]]


def describe(x: Tensor, weights: Sequence[Tensor | None], filled: Sequence[Tensor | None], **numbers: Any) -> Branch:
    """A branch that reads x; `weights` are gain to table, `filled` is y to slopes. Numbers that are not given are 0."""
    tensors = (*native.solid(*weights), x, *filled)
    return Branch(Form(*[None if one is None else one.data_ptr() for one in tensors], **numbers), tensors)


def fits(dim: int, step: int | None, weights: Sequence[Any]) -> bool:
    """Whether the weights of a branch have its sizes: kernels read memory by them. `step` is what outward reads, if not width."""
    gain, shift, inward, inward_bias, outward, outward_bias = weights[:6]
    width = inward.shape[0]
    shapes = ((dim,), (dim,), (width, dim), (width,), (dim, width if step is None else step), (dim,))
    given = (gain, shift, inward, inward_bias, outward, outward_bias)
    return all(one is None or one.shape == shape for one, shape in zip(given, shapes, strict=True))


def room(weights: Sequence[Tensor | None]) -> int:
    """The bytes in which further threads sum the slopes of weights for themselves."""
    size = sum([weight.nbytes for weight in weights if weight is not None])
    return size * max(1, torch.get_num_threads() - 1)


def alone(there: Any, x: Tensor, *given: Any) -> Any:
    """One branch run by itself: y, and what it keeps."""
    y = torch.empty(x.shape, dtype=x.dtype)
    branch, kept = there(y, x.contiguous(), *given)
    forward([branch], x)
    return y, *kept


def forward(branches: Sequence[Branch], like: Tensor) -> None:
    """Fill what each branch gives, from the first to the last; `like` has the shape and the type of the stream."""
    call = native.function("branches", "forward", like.dtype)
    for some, b, t in _regions(branches, like):
        call(native.gemm(like.dtype), _forms(some), len(some), b, t, like.shape[-1], torch.get_num_threads())


def backward(branches: Sequence[Branch], dy: Tensor) -> Tensor:
    """The slope of the first branch's x from that of the last one's y; branches fill the slopes of their weights."""
    call = native.function("branches", "backward", dy.dtype)
    dy, dx = dy.contiguous(), torch.empty(dy.shape, dtype=dy.dtype)
    for some, b, t in reversed(_regions(branches, dy)):
        call(native.gemm(dy.dtype), _forms(some), len(some), dy, dx, b, t, dy.shape[-1], torch.get_num_threads())
        dy = dx
    return dx


def slopes_for(inward: Tensor, outward: Tensor) -> Tensor:
    """Room for the slopes of all weights of a branch: gain, shift, inward and its bias, outward and its bias."""
    return inward.new_empty(sum(_sizes(inward, outward)))


def slopes_of(weights: Sequence[Any], slopes: Tensor) -> list[Tensor | None]:
    """The slopes of each weight; None where there is no weight, and for what stands behind the weights."""
    inward, outward = weights[2], weights[4]
    gain, shift, first, first_bias, second, second_bias = torch.split_with_sizes(slopes, _sizes(inward, outward))
    parts = (gain, shift, first.view(inward.shape), first_bias, second.view(outward.shape), second_bias)
    found = [None if like is None else part for part, like in zip(parts, weights, strict=False)]
    return [*found, *[None] * (len(weights) - len(parts))]


def _sizes(inward: Tensor, outward: Tensor) -> tuple[int, ...]:
    (width, dim), step = inward.shape, outward.shape[1]
    return dim, dim, dim * width, width, dim * step, dim


def _regions(branches: Sequence[Branch], x: Tensor) -> list[tuple[Sequence[Branch], int, int]]:
    """Which branches threads go through without waiting for each other, and how many sequences of how many rows they share.

    Threads share sequences. Where these do not come out even, hidden layers are better off with rows.
    """
    threads, rows = torch.get_num_threads(), x.numel() // x.shape[-1]
    b, t = (x.shape[0], x.shape[1]) if x.dim() == 3 else (rows, 1)
    if len(branches) > 1 and (b % threads == 0 or b >= MANY * threads):
        return [(branches, b, t)]
    return [((one,), b, t) if one.form.attends else ((one,), rows, 1) for one in branches]


def _forms(branches: Sequence[Branch]) -> Any:
    return (Form * len(branches))(*(one.form for one in branches))
