"""Layer normalisation over the last axis."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import shapes


def layer_norm(
    x: Float[Tensor, "*rows d"], gain: Float[Tensor, " d"], shift: Float[Tensor, " d"] | None, eps: float
) -> Float[Tensor, "*rows d"]:
    r"""Each row to mean 0 and variance 1, times a gain, plus a shift.

    .. math:: y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot \gamma + \beta

    Book: Alice 9.3.2. Paper: Ba et al., 2016.

    >>> layer_norm(torch.tensor([[1.0, 3.0]]), torch.ones(2), None, 0.0)
    tensor([[-1.,  1.]])
    """
    shapes.tensor("layer_norm", x=x)
    for name, vector in (("gain", gain), ("shift", shift)):
        if vector is not None and (not isinstance(vector, Tensor) or vector.shape != x.shape[-1:]):
            had = tuple(vector.shape) if isinstance(vector, Tensor) else f"a {type(vector).__name__}"
            raise WonderlandError(f"layer_norm takes rows (..., d) and a {name} (d,), not {tuple(x.shape)} and {had}.")
    return F.layer_norm(x, (x.shape[-1],), gain, shift, eps)


def reference(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    """The equation."""
    off = x - x.mean(-1, keepdim=True)
    y = off * torch.rsqrt(off.square().mean(-1, keepdim=True) + eps) * gain
    return y if shift is None else y + shift
