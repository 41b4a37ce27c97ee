"""Rules of Fourier transforms: linear maps, whose transpose is the transform in the other direction."""

import torch

from wonderland.autodiff.rules.table import linear

aten = torch.ops.aten


def _from_half(g, n):
    """The transpose of a transform of real numbers: the left out half of the spectrum had no cotangent."""
    last = n.dim[-1]
    if n.onesided:
        missing = n.self.shape[last] - g.shape[last]
        g = aten.constant_pad_nd(g, [0] * (2 * (g.dim() - 1 - last % g.dim())) + [0, missing])
    return torch.real(aten._fft_c2c(g, n.dim, n.normalization, False))


def _to_half(g, n):
    """The transpose of a transform to real numbers: what stands for a pair of frequencies counts twice."""
    last = n.dim[-1] % g.dim()
    found = aten._fft_r2c(g, n.dim, n.normalization, True)
    place = torch.arange(found.shape[last], device=g.device)
    twice = 1 + ((place > 0) & (place <= n.last_dim_size - found.shape[last])).to(g.dtype)
    return found * twice.reshape(-1, *[1] * (g.dim() - 1 - last))


linear("_fft_c2c", self=lambda g, n: aten._fft_c2c(g, n.dim, n.normalization, not n.forward))
linear("_fft_r2c", self=_from_half)
linear("_fft_c2r", self=_to_half)
