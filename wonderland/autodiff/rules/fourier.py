"""Rules of Fourier transforms: linear maps, whose transpose is the transform in the other direction."""

import torch

from wonderland.autodiff.rules.table import linear

aten = torch.ops.aten


def _r2c_cotangent(g, n):
    """The transpose of a real-to-complex transform: the omitted half of the spectrum has cotangent zero."""
    last = n.dim[-1]
    if n.onesided:
        missing = n.self.shape[last] - g.shape[last]
        g = aten.constant_pad_nd(g, [0] * (2 * (g.dim() - 1 - last % g.dim())) + [0, missing])
    return torch.real(aten._fft_c2c(g, n.dim, n.normalization, False))


def _c2r_cotangent(g, n):
    """The transpose of a complex-to-real transform: an entry that represents two conjugate frequencies counts twice."""
    last = n.dim[-1] % g.dim()
    spectrum = aten._fft_r2c(g, n.dim, n.normalization, True)
    frequency = torch.arange(spectrum.shape[last], device=g.device)
    twice = 1 + ((frequency > 0) & (frequency <= n.last_dim_size - spectrum.shape[last])).to(g.dtype)
    return spectrum * twice.reshape(-1, *[1] * (g.dim() - 1 - last))


linear("_fft_c2c", self=lambda g, n: aten._fft_c2c(g, n.dim, n.normalization, not n.forward))
linear("_fft_r2c", self=_r2c_cotangent)
linear("_fft_c2r", self=_c2r_cotangent)
