"""A residual MLP block with pre-norm in one kernel: norm, two linear layers with an activation between them, and sum."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.ops import fused_block, native, shapes
from wonderland.ops.fused_block import ROWS_AT_ONCE, Described, usable
from wonderland.ops.gelu import reference as gelu

ACTIVATIONS = ("identity", "relu", "squared_relu", "sigmoid", "silu", "tanh", "gelu", "gelu_tanh")


def fused_mlp_block(
    x: Float[Tensor, "*rows d"],
    gain: Float[Tensor, " d"],
    shift: Float[Tensor, " d"] | None,
    inward: Float[Tensor, "h d"],
    inward_bias: Float[Tensor, " h"] | None,
    outward: Float[Tensor, "d h"],
    outward_bias: Float[Tensor, " d"] | None,
    *,
    eps: float,
    centred: bool = True,
    activation: str = "gelu",
) -> Float[Tensor, "*rows d"]:
    r"""Residual MLP block with pre-norm.

    .. math:: y = x + W_2\, \phi(W_1\, \mathrm{norm}(x) + b_1) + b_2

    The norm is LayerNorm, or RMSNorm without `centred`. The hidden layer before its activation is kept for the backward
    pass, the rest is computed again.
    Book: Alice 10.3.1; D2L 11.7.

    >>> w = torch.eye(2)
    >>> fused_mlp_block(torch.tensor([[1.0, 3.0]]), torch.ones(2), None, w, None, w, None, eps=0.0, activation="relu")
    tensor([[1., 4.]])
    """
    given = (x, gain, shift, inward, inward_bias, outward, outward_bias)
    _check(*given, activation)
    if not usable(*given):
        return reference(*given, eps=eps, centred=centred, activation=activation)
    return unchecked(x, given[1:], eps=eps, centred=centred, activation=activation)


def unchecked(x: Tensor, weights: tuple[Tensor | None, ...], *, eps: float, centred: bool, activation: str) -> Tensor:
    """The kernel, for weights of the right shapes where `usable` says so."""
    learns = native.needs_backward(x, *weights)
    return native.call_first(_forward, x, *weights, float(eps), centred, ACTIVATIONS.index(activation), learns)


def _check(x, gain, shift, inward, inward_bias, outward, outward_bias, activation) -> None:
    """Say what does not fit: kernels read memory by these sizes."""
    shapes.tensor("fused_mlp_block", x=x)
    if not x.dim():
        raise WonderlandError("fused_mlp_block takes a tensor (..., d) for x, not a number.")
    if activation not in ACTIVATIONS:
        raise WonderlandError(
            f"fused_mlp_block has no activation {activation!r}.{nearest(str(activation), ACTIVATIONS)} Known are {', '.join(ACTIVATIONS)}."
        )
    weights = {
        "gain": (gain, "d"), "shift": (shift, "d ?"), "inward": (inward, "h d"), "inward_bias": (inward_bias, "h ?"),
        "outward": (outward, "d h"), "outward_bias": (outward_bias, "d ?"),
    }  # fmt: skip
    shapes.agree("fused_mlp_block", x=(x.reshape(-1, x.shape[-1]) if x.dim() != 2 else x, "rows d"), **weights)
    shapes.real("fused_mlp_block", x=x, **{name: weight for name, (weight, _) in weights.items()})


def reference(x, gain, shift, inward, inward_bias, outward, outward_bias, *, eps, centred, activation) -> Tensor:
    """The equation."""
    off = x - x.mean(-1, keepdim=True) if centred else x
    normed = off * torch.rsqrt(off.square().mean(-1, keepdim=True) + eps) * gain
    h = F.linear(normed if shift is None else normed + shift, inward, inward_bias)
    kinds = {
        "identity": lambda h: h,
        "relu": F.relu,
        "squared_relu": lambda h: F.relu(h).square(),
        "sigmoid": torch.sigmoid,
        "silu": F.silu,
        "tanh": torch.tanh,
        "gelu": gelu,
        "gelu_tanh": lambda h: gelu(h, tanh=True),
    }
    return x + F.linear(kinds[activation](h), outward, outward_bias)


@torch.library.custom_op("wonderland::fused_mlp_block", mutates_args=(), device_types="cpu")
def _forward(
    x: Tensor,
    gain: Tensor,
    shift: Tensor | None,
    inward: Tensor,
    inward_bias: Tensor | None,
    outward: Tensor,
    outward_bias: Tensor | None,
    eps: float,
    centred: bool,
    activation: int,
    keeps: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    weights = (gain, shift, inward, inward_bias, outward, outward_bias)
    rows, x, y = x.numel() // x.shape[-1] if keeps else 0, x.contiguous(), torch.empty(x.shape, dtype=x.dtype)
    projected, moments = x.new_empty(rows, inward.shape[0]), x.new_empty(rows, 2)
    filled = (y, projected, None, None, moments, None) if keeps else (y, None, None, None, None, None)
    fused_block.run_forward(_describe(x, weights, filled, eps, centred, activation), x)
    return y, projected, moments


@_forward.register_fake
def _(x, gain, shift, inward, inward_bias, outward, outward_bias, eps, centred, activation, keeps):
    rows = x.numel() // x.shape[-1] if keeps else 0
    return (
        torch.empty(x.shape, dtype=x.dtype, device=x.device),
        x.new_empty(rows, inward.shape[0]),
        x.new_empty(rows, 2),
    )


@torch.library.custom_op("wonderland::fused_mlp_block_backward", mutates_args=(), device_types="cpu")
def _backward(
    x: Tensor,
    gain: Tensor,
    shift: Tensor | None,
    inward: Tensor,
    outward: Tensor,
    projected: Tensor,
    moments: Tensor,
    dy: Tensor,
    eps: float,
    centred: bool,
    activation: int,
) -> tuple[Tensor, Tensor]:
    weights = (gain, shift, inward, None, outward, None)
    grads = fused_block.empty_grads(inward, outward)
    filled = (None, projected.contiguous(), None, None, moments.contiguous(), grads)
    block = _describe(x.contiguous(), weights, filled, eps, centred, activation)
    return fused_block.run_backward(block, dy), grads


@_backward.register_fake
def _(x, gain, shift, inward, outward, projected, moments, dy, eps, centred, activation):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), fused_block.empty_grads(inward, outward)


def _describe(x: Tensor, weights: Any, filled: Any, eps: float, centred: bool, activation: int) -> Described:
    sizes = {"width": weights[2].shape[0], "at_once": min(ROWS_AT_ONCE, x.numel() // x.shape[-1])}
    return fused_block.describe(x, (*weights, None), filled, eps=eps, centred=centred, activation=activation, **sizes)


def _remember(ctx, inputs, output):
    *given, ctx.eps, ctx.centred, ctx.activation, _ = inputs
    ctx.save_for_backward(*given, *output[1:])


def _differentiate(ctx, dy, *_):
    x, gain, shift, inward, inward_bias, outward, outward_bias, projected, moments = ctx.saved_tensors
    given = (x, gain, shift, inward, inward_bias, outward, outward_bias)
    if native.is_second_order():

        def equation(*given):
            return reference(*given, eps=ctx.eps, centred=ctx.centred, activation=ACTIVATIONS[ctx.activation])

        return *native.differentiable_backward(equation, given, dy), None, None, None, None
    dx, grads = native.call(
        _backward, x, gain, shift, inward, outward, projected, moments, dy, ctx.eps, ctx.centred, ctx.activation
    )
    return dx, *fused_block.split_grads(given[1:], grads), None, None, None, None


_forward.register_autograd(_differentiate, setup_context=_remember)
