"""Root mean square normalisation in one pass forward and one back, where torch makes five."""

import torch
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native, shapes
from wonderland.ops.steps import entry

PARTS = 16  # sums over rows are made in so many parts, whatever the number of threads, so that bits do not depend on it


def rms_norm(x: Float[Tensor, "*rows d"], gain: Float[Tensor, " d"], eps: float) -> Float[Tensor, "*rows d"]:
    r"""Each row to mean square 1, times a gain.

    .. math:: y = \frac{x}{\sqrt{\frac{1}{d} \sum_i x_i^2 + \epsilon}} \odot \gamma

    >>> rms_norm(torch.tensor([[3.0, 4.0]]), torch.ones(2), 0.0)
    tensor([[0.8485, 1.1314]])
    """
    shapes.tensor("rms_norm", x=x, gain=gain)
    if gain.dim() != 1 or x.dim() < 1 or x.shape[-1] != gain.shape[0]:
        raise WonderlandError(
            f"rms_norm takes rows (..., d) and a gain (d,), not {tuple(x.shape)} and {tuple(gain.shape)}."
        )
    if not native.usable(x, gain):
        return reference(x, gain, eps)
    if native.learns(x, gain):
        return native.call(_forward, x, gain, eps)[0]
    return _plain(x, gain, eps)


def reference(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """The equation."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def _run(x: Tensor, gain: Tensor, eps: float, scales: Tensor | None) -> Tensor:
    d = x.shape[-1]
    x, y = x.contiguous(), torch.empty(x.shape, dtype=x.dtype)
    native.function("rms_norm", "forward", x.dtype)(
        x, gain.contiguous(), float(eps), y, scales, x.numel() // d, d, torch.get_num_threads()
    )
    return y


_plain = entry(
    "rms_norm_plain(Tensor x, Tensor gain, float eps) -> Tensor",
    lambda x, gain, eps: _run(x, gain, eps, None),
    lambda x, gain, eps: torch.empty(x.shape, dtype=x.dtype, device=x.device),
)


@torch.library.custom_op("wonderland::rms_norm", mutates_args=(), device_types="cpu")
def _forward(x: Tensor, gain: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    scales = x.new_empty(x.shape[:-1])
    return _run(x, gain, eps, scales), scales


@_forward.register_fake
def _(x, gain, eps):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), x.new_empty(x.shape[:-1])


@torch.library.custom_op("wonderland::rms_norm_backward", mutates_args=(), device_types="cpu")
def _backward(x: Tensor, gain: Tensor, scales: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    d = x.shape[-1]
    rows = x.numel() // d
    parts = min(PARTS, rows)
    dx, dgain = torch.empty(x.shape, dtype=x.dtype), x.new_empty(parts, d)
    native.function("rms_norm", "backward", x.dtype)(
        x.contiguous(), gain.contiguous(), scales, dy.contiguous(), dx, dgain, rows, d, parts, torch.get_num_threads()
    )
    return dx, dgain.sum(0)


@_backward.register_fake
def _(x, gain, scales, dy):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), torch.empty_like(gain)


def _remember(ctx, inputs, output):
    x, gain, ctx.eps = inputs
    ctx.save_for_backward(x, gain, output[1])


def _differentiate(ctx, dy, _):
    x, gain, scales = ctx.saved_tensors
    if native.graphed():
        return *native.again(lambda x, gain: reference(x, gain, ctx.eps), (x, gain), dy), None
    return *native.call(_backward, x, gain, scales, dy), None


_forward.register_autograd(_differentiate, setup_context=_remember)
