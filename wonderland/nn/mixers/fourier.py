"""FNet: a Fourier transform over time and features mixes everything with everything, and has nothing to learn."""

import math

import torch
from torch import Tensor

from wonderland.core import part
from wonderland.nn.contract.mixer import Mixer, lengths
from wonderland.nn.contract.state import State


@part
class Fourier(Mixer):
    r"""The real part of the two-dimensional discrete Fourier transform.

    .. math:: Y = \mathrm{Re}\,(F_n X F_d), \qquad (F_n)_{kj} = e^{-2 \pi i k j / n}

    The transform depends on the number of tokens n, so under a mask each row gets the transform of its own length, by
    Bluestein's method: a convolution with a chirp, at about six times the cost of the plain transform, in time
    O(t log t) all the same. Not causal; no parameters.

    Shapes: x (b, t, dim) -> (b, t, dim). Book: Alice 11.3. Paper: Lee-Thorp et al., 2022 (FNet).

    >>> Fourier(dim=2)(torch.ones(1, 3, 2))[0, 0]
    tensor([6., 0.])
    """

    causal = False

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        wide = x.float() if x.element_size() < 4 else x  # transforms have no half precision
        if mask is None:
            return torch.fft.fft2(wide).real.to(x.dtype), ()
        return ragged_fft(torch.fft.fft(wide), lengths(mask)).real.to(x.dtype), ()


def ragged_fft(x: Tensor, n: Tensor) -> Tensor:
    r"""The Fourier transform over time of rows with `n` (b,) tokens each; what follows them is 0 and comes out unused.

    .. math:: X_k = w_k \sum_j (x_j w_j)\, \bar w_{k-j}, \qquad w_j = e^{-i \pi j^2 / n}

    because 2kj = k^2 + j^2 - (k - j)^2. Squares are reduced modulo 2n as integers, so long rows lose no digits.

    >>> x = torch.randn(1, 5, 2, dtype=torch.complex128)
    >>> torch.allclose(ragged_fft(x, torch.tensor([5])), torch.fft.fft(x, dim=1))
    True
    """
    t = x.shape[1]
    size = 1 << (2 * t - 1).bit_length()
    n = n.clamp(min=1).unsqueeze(1)
    steps = torch.arange(t, device=x.device)
    turn = (steps * steps % (2 * n)).to(x.real.dtype) * math.pi / n
    chirp = torch.polar(torch.ones_like(turn), -turn).unsqueeze(-1)
    # The kernel reaches both ways in time; a circular transform keeps its negative side at the far end.
    kernel = torch.cat(
        [chirp, chirp.new_zeros(*n.shape, 1).expand(-1, size - 2 * t + 1, 1), chirp[:, 1:].flip(1)], 1
    ).conj()
    spectrum = torch.fft.fft(x * chirp, size, dim=1) * torch.fft.fft(kernel, dim=1)
    return torch.fft.ifft(spectrum, dim=1)[:, :t] * chirp
