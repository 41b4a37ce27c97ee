"""Layer normalisation in one pass forward and one back."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native, shapes
from wonderland.ops.rms_norm import PARTS


def layer_norm(
    x: Float[Tensor, "*rows d"], gain: Float[Tensor, " d"], shift: Float[Tensor, " d"] | None, eps: float
) -> Float[Tensor, "*rows d"]:
    r"""Each row to mean 0 and variance 1, times a gain, plus a shift.

    .. math:: y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot \gamma + \beta

    Without gradients, and where there is no kernel, torch's own does it. Book: Alice 9.3.2. Paper: Ba et al., 2016.

    >>> layer_norm(torch.tensor([[1.0, 3.0]]), torch.ones(2), None, 0.0)
    tensor([[-1.,  1.]])
    """
    shapes.tensor("layer_norm", x=x)
    for name, vector in (("gain", gain), ("shift", shift)):
        if vector is not None and (not isinstance(vector, Tensor) or vector.shape != x.shape[-1:]):
            had = tuple(vector.shape) if isinstance(vector, Tensor) else f"a {type(vector).__name__}"
            raise WonderlandError(f"layer_norm takes rows (..., d) and a {name} (d,), not {tuple(x.shape)} and {had}.")
    kinds = (torch.float32, torch.float64)
    if torch.compiler.is_compiling() or x.dtype not in kinds or not x.numel() or not native.usable(x, gain, shift):
        return F.layer_norm(x, (x.shape[-1],), gain, shift, eps)
    # A record says more with the operation that everybody knows.
    if native.recorded() or not native.learns(x, gain, shift):
        return F.layer_norm(x, (x.shape[-1],), gain, shift, eps)
    return native.first(_forward, x, gain, shift, float(eps))


def reference(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    """The equation."""
    off = x - x.mean(-1, keepdim=True)
    y = off * torch.rsqrt(off.square().mean(-1, keepdim=True) + eps) * gain
    return y if shift is None else y + shift


@torch.library.custom_op("wonderland::layer_norm", mutates_args=(), device_types="cpu")
def _forward(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    d = x.shape[-1]
    y, facts = torch.empty(x.shape, dtype=x.dtype), x.new_empty(*x.shape[:-1], 2)
    native.function("layer_norm", "forward", x.dtype)(
        x.contiguous(), gain.contiguous(), None if shift is None else shift.contiguous(), eps, y, facts,
        x.numel() // d, d, torch.get_num_threads(),
    )  # fmt: skip
    return y, facts


@_forward.register_fake
def _(x, gain, shift, eps):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), x.new_empty(*x.shape[:-1], 2)


@torch.library.custom_op("wonderland::layer_norm_backward", mutates_args=(), device_types="cpu")
def _backward(x: Tensor, gain: Tensor, facts: Tensor, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    d = x.shape[-1]
    rows = x.numel() // d
    parts = min(PARTS, rows)
    dx, sums = torch.empty(x.shape, dtype=x.dtype), x.new_empty(2, parts, d)
    native.function("layer_norm", "backward", x.dtype)(
        x.contiguous(), gain.contiguous(), facts, dy.contiguous(), dx, sums[0], sums[1], rows, d, parts,
        torch.get_num_threads(),
    )  # fmt: skip
    dgain, dshift = sums.sum(1)
    return dx, dgain.clone(), dshift.clone()


@_backward.register_fake
def _(x, gain, facts, dy):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), torch.empty_like(gain), torch.empty_like(gain)


def _remember(ctx, inputs, output):
    x, gain, shift, ctx.eps = inputs
    ctx.save_for_backward(x, gain, shift, output[1])


def _differentiate(ctx, dy, _):
    x, gain, shift, facts = ctx.saved_tensors
    if native.graphed():

        def equation(x, gain, shift):
            return reference(x, gain, shift, ctx.eps)

        return *native.again(equation, (x, gain, shift), dy), None
    dx, dgain, dshift = native.call(_backward, x, gain, facts, dy)
    return dx, dgain, None if shift is None else dshift, None


_forward.register_autograd(_differentiate, setup_context=_remember)
