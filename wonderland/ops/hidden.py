"""A hidden layer as a branch of a residual block: norm, two matrix products and what is between them, in one kernel."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.ops import branches, native, shapes
from wonderland.ops.branches import ROOM, SOME, Branch, Kind
from wonderland.ops.chain import Link
from wonderland.ops.gelu import reference as gelu

ACTIVATIONS = ("identity", "relu", "squared_relu", "sigmoid", "silu", "tanh", "gelu", "gelu_tanh")
FEWEST = 64  # rows below which nothing is gained
Weights = tuple[Tensor | None, ...]


def usable(x: Tensor, *weights: Tensor | None) -> bool:
    """Whether the kernel can take it, and nobody wants to see the operations it is made of."""
    return (
        x.dtype in (torch.float32, torch.float64)
        and x.numel() >= FEWEST * x.shape[-1]
        and native.unheard(x, *weights)
        and branches.room(weights) <= ROOM
        and not torch.is_autocast_enabled("cpu")
        and not native.imagined()
        and native.usable(x, *weights)
        and native.gemm(x.dtype) != 0
    )


def link(weights: Weights, *, eps: float, centred: bool = True, activation: str = "gelu") -> Link:
    """`hidden` as one link of a chain; `weights` are its own, gain first, which adds it to the stream."""
    assert weights[0] is not None
    return Link(KIND, weights, (float(eps), centred, ACTIVATIONS.index(activation)))


def hidden(
    x: Float[Tensor, "*rows d"],
    gain: Float[Tensor, " d"] | None,
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
    r"""What a token is, plus what one hidden layer makes of its normed form.

    .. math:: y = x + W_2\, \phi(W_1\, \mathrm{norm}(x) + b_1) + b_2

    The norm is that of layers, or without `centred` that of mean squares; without a gain there is neither norm nor sum, and
    y is the hidden layer's answer alone. The hidden layer before its activation is kept for
    the backward pass, the rest made anew. Each thread takes its rows through all of it and calls torch's matrix product on
    them, so that what one part leaves in a core's cache the next one finds there.
    Book: Alice 10.3.1; D2L 11.7.

    >>> w = torch.eye(2)
    >>> hidden(torch.tensor([[1.0, 3.0]]), torch.ones(2), None, w, None, w, None, eps=0.0, activation="relu")
    tensor([[1., 4.]])
    """
    given = (x, gain, shift, inward, inward_bias, outward, outward_bias)
    _check(*given, activation)
    if not usable(*given):
        return reference(*given, eps=eps, centred=centred, activation=activation)
    return native.first(_forward, *given, float(eps), centred, ACTIVATIONS.index(activation), native.learns(*given))


def _check(x, gain, shift, inward, inward_bias, outward, outward_bias, activation) -> None:
    """Say what does not fit: kernels read memory by these sizes."""
    shapes.tensor("hidden", x=x)
    if not x.dim():
        raise WonderlandError("hidden takes a tensor (..., d) for x, not a number.")
    if activation not in ACTIVATIONS:
        raise WonderlandError(
            f"hidden has no activation {activation!r}.{nearest(str(activation), ACTIVATIONS)} Known are {', '.join(ACTIVATIONS)}."
        )
    weights = {
        "gain": (gain, "d ?"), "shift": (shift, "d ?"), "inward": (inward, "h d"), "inward_bias": (inward_bias, "h ?"),
        "outward": (outward, "d h"), "outward_bias": (outward_bias, "d ?"),
    }  # fmt: skip
    shapes.agree("hidden", x=(x.reshape(-1, x.shape[-1]) if x.dim() != 2 else x, "rows d"), **weights)
    shapes.real("hidden", x=x, **{name: weight for name, (weight, _) in weights.items()})


def reference(x, gain, shift, inward, inward_bias, outward, outward_bias, *, eps, centred, activation) -> Tensor:
    """The equation."""
    normed = x
    if gain is not None:
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
    y = F.linear(kinds[activation](h), outward, outward_bias)
    return y if gain is None else x + y


@torch.library.custom_op("wonderland::hidden", mutates_args=(), device_types="cpu")
def _forward(
    x: Tensor,
    gain: Tensor | None,
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
    return branches.alone(_there, x, *weights, eps, centred, activation, keeps)


@_forward.register_fake
def _(x, gain, shift, inward, inward_bias, outward, outward_bias, eps, centred, activation, keeps):
    rows = x.numel() // x.shape[-1] if keeps else 0
    return (
        torch.empty(x.shape, dtype=x.dtype, device=x.device),
        x.new_empty(rows, inward.shape[0]),
        x.new_empty(rows, 2),
    )


@torch.library.custom_op("wonderland::hidden_backward", mutates_args=(), device_types="cpu")
def _backward(
    x: Tensor,
    gain: Tensor | None,
    shift: Tensor | None,
    inward: Tensor,
    outward: Tensor,
    kept: Tensor,
    facts: Tensor,
    dy: Tensor,
    eps: float,
    centred: bool,
    activation: int,
) -> tuple[Tensor, Tensor]:
    weights = (gain, shift, inward, None, outward, None)
    branch, slopes = _back(x.contiguous(), weights, (kept, facts), (eps, centred, activation))
    return branches.backward([branch], dy), slopes


@_backward.register_fake
def _(x, gain, shift, inward, outward, kept, facts, dy, eps, centred, activation):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), branches.slopes_for(inward, outward)


def _there(y: Tensor, x: Tensor, *given: Any) -> tuple[Branch, tuple[Tensor, ...]]:
    *weights, eps, centred, activation, keeps = given
    rows = x.numel() // x.shape[-1] if keeps else 0
    kept, facts = x.new_empty(rows, weights[2].shape[0]), x.new_empty(rows, 2)
    into = (y, kept, None, None, facts, None) if keeps else (y, None, None, None, None, None)
    return _describe(x, weights, into, eps, centred, activation), (kept, facts)


def _back(x: Tensor, weights: Sequence[Any], kept: Any, how: Any) -> tuple[Branch, Tensor]:
    slopes, (hidden, facts) = branches.slopes_for(weights[2], weights[4]), native.solid(*kept)
    return _describe(x, weights, (None, hidden, None, None, facts, slopes), *how), slopes


def _describe(x: Tensor, weights: Any, filled: Any, eps: float, centred: bool, activation: int) -> Branch:
    sizes = {"width": weights[2].shape[0], "some": min(SOME, x.numel() // x.shape[-1])}
    return branches.describe(x, (*weights, None), filled, eps=eps, centred=centred, activation=activation, **sizes)


def _remember(ctx, inputs, output):
    *given, ctx.eps, ctx.centred, ctx.activation, _ = inputs
    ctx.save_for_backward(*given, *output[1:])


def _differentiate(ctx, dy, *_):
    x, gain, shift, inward, inward_bias, outward, outward_bias, kept, facts = ctx.saved_tensors
    given = (x, gain, shift, inward, inward_bias, outward, outward_bias)
    if native.graphed():

        def equation(*given):
            return reference(*given, eps=ctx.eps, centred=ctx.centred, activation=ACTIVATIONS[ctx.activation])

        return *native.again(equation, given, dy), None, None, None, None
    dx, slopes = native.call(
        _backward, x, gain, shift, inward, outward, kept, facts, dy, ctx.eps, ctx.centred, ctx.activation
    )
    return dx, *branches.slopes_of(given[1:], slopes), None, None, None, None


_forward.register_autograd(_differentiate, setup_context=_remember)
KIND = Kind(_forward, _there, _back)
