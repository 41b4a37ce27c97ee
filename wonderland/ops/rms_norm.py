"""Root mean square normalisation over the last axis."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import shapes


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
    return F.rms_norm(x, (x.shape[-1],), gain, eps)


def reference(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """The equation."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain
