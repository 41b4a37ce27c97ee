"""A short depthwise causal convolution, with features last, in one pass over memory."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native, shapes
from wonderland.ops.over_time import is_exporting

WIDEST = 64
STRETCH = 32  # as in the kernel

Row = Float[Tensor, "b t d"]


def short_convolution(
    x: Row,
    weight: Float[Tensor, "d w"],
    bias: Float[Tensor, " d"] | None = None,
    *,
    tail: Float[Tensor, "b past d"] | None = None,
    silu: bool = False,
) -> Row:
    r"""Each channel with its own kernel, the oldest input first, and SiLU after it if asked.

    .. math::
        y_i = \mathrm{silu}\big(b + \textstyle\sum_{j=1}^{w} W_j \odot x_{i-w+j}\big)

    `tail` (b, w - 1, d) holds the inputs before the first; without it they are 0.

    >>> short_convolution(torch.ones(1, 3, 1), torch.tensor([[1.0, 10.0]])).flatten()
    tensor([10., 11., 11.])
    """
    sizes = shapes.agree("short_convolution", x=(x, "b t d"), weight=(weight, "d w"), bias=(bias, "d ?"))
    if sizes["w"] < 1:
        raise WonderlandError("short_convolution takes a weight (d, w) with at least one tap.")
    shapes.agree("short_convolution", x=(x, "b t d"), tail=(tail, f"b {sizes['w'] - 1} d ?"))
    shapes.real("short_convolution", x=x, weight=weight, bias=bias, tail=tail)
    x, weight, bias, tail = native.common_dtype(x, weight, bias, tail)
    if weight.shape[1] <= WIDEST and not is_exporting() and native.usable("short_convolution", x, weight, bias, tail):
        return native.call(_forward, x, weight.t(), bias, tail, silu)
    return reference(x, weight, bias, tail=tail, silu=silu)


def reference(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, tail: Tensor | None = None, silu: bool = False
) -> Tensor:
    """The equation in plain PyTorch: one product for each tap."""
    width = weight.shape[1]
    past = x.new_zeros(x.shape[0], width - 1, x.shape[2]) if tail is None else tail
    longer = torch.cat([past, x], 1)
    y = torch.zeros_like(x) if bias is None else bias.expand_as(x)
    for j in range(width):
        y = torch.addcmul(y, weight[:, j], longer[:, j : j + x.shape[1]])
    return F.silu(y) if silu else y


@torch.library.custom_op("wonderland::short_convolution", mutates_args=(), device_types="cpu")
def _forward(x: Tensor, weight: Tensor, bias: Tensor | None, tail: Tensor | None, silu: bool) -> Tensor:
    b, t, d = x.shape
    x, y = native.evenly_spaced(x), x.new_empty(x.shape)
    native.function("short_convolution", "forward", x.dtype)(
        x, x.stride(1), *native.contiguous(weight, bias, tail), y,
        b, t, d, weight.shape[0], int(silu), torch.get_num_threads(),
    )  # fmt: skip
    return y


@_forward.register_fake
def _(x, weight, bias, tail, silu):
    return x.new_empty(x.shape)


@torch.library.custom_op("wonderland::short_convolution_backward", mutates_args=(), device_types="cpu")
def _backward(
    x: Tensor, weight: Tensor, bias: Tensor | None, tail: Tensor | None, dy: Tensor, silu: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    b, t, d = x.shape
    w = weight.shape[0]
    x = native.evenly_spaced(x)
    pieces = b * -(-t // STRETCH)
    dx, dtail = x.new_empty(b, t, d), x.new_empty(b, w - 1, d)
    dweight, dbias = x.new_empty(pieces, w, d), x.new_empty(pieces, d)
    native.function("short_convolution", "backward", x.dtype)(
        x, x.stride(1), *native.contiguous(weight, bias, tail, dy), dx, dweight, dbias, dtail,
        b, t, d, w, int(silu), torch.get_num_threads(),
    )  # fmt: skip
    return dx, dweight.sum(0), dbias.sum(0), dtail


@_backward.register_fake
def _(x, weight, bias, tail, dy, silu):
    new = x.new_empty
    return new(x.shape), new(weight.shape), new(x.shape[2]), new(x.shape[0], weight.shape[0] - 1, x.shape[2])


def _remember(ctx, inputs, output):
    x, weight, bias, tail, ctx.silu = inputs
    ctx.save_for_backward(x, weight, bias, tail)


def _differentiate(ctx, dy):
    x, weight, bias, tail = ctx.saved_tensors
    if native.is_second_order():

        def equation(x, weight, bias, tail):
            return reference(x, weight.t(), bias, tail=tail, silu=ctx.silu)

        return *native.differentiable_backward(equation, (x, weight, bias, tail), dy), None
    dx, dweight, dbias, dtail = native.call(_backward, x, weight, bias, tail, dy, ctx.silu)
    return dx, dweight, None if bias is None else dbias, None if tail is None else dtail, None


_forward.register_autograd(_differentiate, setup_context=_remember)
