"""What the two fused residual blocks share: how a block `x + f(norm(x))` is described to C++, run, and differentiated.

Each thread takes its sequences (or rows) through the whole block and calls torch's own matrix product for them, so that
intermediate results stay in its core's cache. `fused_attention_block` and `fused_mlp_block` are the two blocks.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wonderland.ops import native

TENSORS = (
    "gain", "shift", "inward", "inward_bias", "outward", "outward_bias", "table", "x", "y", "projected", "mixed", "sums",
    "moments", "grads",
)  # fmt: skip
REALS = ("scale", "eps")
NUMBERS = ("attends", "centred", "width", "at_once", "activation", "heads", "kv", "d", "causal", "rotated", "half")
FEWEST = 64  # rows below which nothing is gained
ROWS_AT_ONCE = 128  # what is computed of so many rows stays in a core's cache
MOST_BYTES = 1 << 26  # that the gradients of weights may take, which each further thread sums for itself


class Struct(ctypes.Structure):
    """The fields of `struct FusedBlock` in kernels/fused_block.h, in its order."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in TENSORS),
        *((name, ctypes.c_double) for name in REALS),
        *((name, ctypes.c_long) for name in NUMBERS),
    ]


class Described(NamedTuple):
    """A block as C++ reads it, and the tensors that have to live until it has run."""

    struct: Struct
    tensors: tuple[Tensor | None, ...]


def usable(x: Tensor, *weights: Tensor | None) -> bool:
    """Whether kernels can be used: plain tensors on the CPU, sizes that pay, and nothing that observes operators."""
    return (
        x.dtype in (torch.float32, torch.float64)
        and native.no_dispatch_mode(x, *weights)
        and not torch.is_autocast_enabled("cpu")
        and not native.is_shapes_only()
        and pays(x, *weights)
        and native.usable("fused_block", x, *weights)
    )


def pays(x: Tensor, *weights: Tensor | None) -> bool:
    """Whether there are enough rows to gain something, and memory for the gradients that each thread sums."""
    enough = x.numel() >= FEWEST * x.shape[-1]
    return enough and grads_bytes(weights) <= MOST_BYTES and native.gemm(x.dtype) != 0


def describe(x: Tensor, weights: Sequence[Tensor | None], filled: Sequence[Tensor | None], **numbers: Any) -> Described:
    """A block that reads x; `weights` are gain to table, `filled` is y to grads. Numbers that are not given are 0."""
    tensors = (*native.contiguous(*weights), x, *filled)
    addresses = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
    return Described(Struct(*addresses, **numbers), tensors)


def weights_fit(dim: int, mixed: int | None, weights: Sequence[Any]) -> bool:
    """Whether weights have the shapes by which kernels read memory. `mixed` is the width that `outward` reads, if not the
    one that `inward` writes."""
    gain, shift, inward, inward_bias, outward, outward_bias = weights[:6]
    width = inward.shape[0]
    shapes = ((dim,), (dim,), (width, dim), (width,), (dim, width if mixed is None else mixed), (dim,))
    given = (gain, shift, inward, inward_bias, outward, outward_bias)
    return all(weight is None or weight.shape == shape for weight, shape in zip(given, shapes, strict=True))


def grads_bytes(weights: Sequence[Tensor | None]) -> int:
    """The bytes in which further threads sum the gradients of weights for themselves."""
    size = sum([weight.nbytes for weight in weights if weight is not None])
    return size * max(1, torch.get_num_threads() - 1)


def run_forward(block: Described, x: Tensor) -> None:
    """Fill the output of a block that reads x."""
    call = native.function("fused_block", "forward", x.dtype)
    call(native.gemm(x.dtype), block.struct, *_shares(block, x), x.shape[-1], torch.get_num_threads())


def run_backward(block: Described, dy: Tensor) -> Tensor:
    """The gradient of x from that of y; the gradients of weights are filled on the way."""
    call = native.function("fused_block", "backward", dy.dtype)
    dy, dx = dy.contiguous(), torch.empty(dy.shape, dtype=dy.dtype)
    call(
        native.gemm(dy.dtype),
        block.struct,
        dy,
        dx,
        *_shares(block, dy),
        dy.shape[-1],
        torch.get_num_threads(),
    )
    return dx


def empty_grads(inward: Tensor, outward: Tensor) -> Tensor:
    """One tensor for the gradients of all weights of a block: gain, shift, inward and its bias, outward and its bias."""
    return inward.new_empty(sum(_sizes(inward, outward)))


def split_grads(weights: Sequence[Any], grads: Tensor) -> list[Tensor | None]:
    """The gradient of each weight; None where there is no weight, and for what follows the weights (a table)."""
    inward, outward = weights[2], weights[4]
    gain, shift, first, first_bias, second, second_bias = torch.split_with_sizes(grads, _sizes(inward, outward))
    parts = (gain, shift, first.view(inward.shape), first_bias, second.view(outward.shape), second_bias)
    own = [None if weight is None else part for part, weight in zip(parts, weights, strict=False)]
    return [*own, *[None] * (len(weights) - len(parts))]


def _sizes(inward: Tensor, outward: Tensor) -> tuple[int, ...]:
    (width, dim), mixed = inward.shape, outward.shape[1]
    return dim, dim, dim * width, width, dim * mixed, dim


def _shares(block: Described, x: Tensor) -> tuple[int, int]:
    """What threads share: sequences of t rows for attention, single rows for an MLP."""
    return (x.shape[0], x.shape[1]) if block.struct.attends else (x.numel() // x.shape[-1], 1)
