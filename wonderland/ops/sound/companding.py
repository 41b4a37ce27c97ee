"""Mu-law: a logarithm of the amplitude, after which 256 values are enough for speech."""

import math

import torch
from torch import Tensor

from wonderland.core import WonderlandError


def mu_law(x: Tensor, levels: int = 256) -> Tensor:
    r"""Compress amplitudes in -1..1.

    .. math:: y = \mathrm{sign}(x)\, \frac{\ln(1 + \mu |x|)}{\ln(1 + \mu)}, \qquad \mu = \text{levels} - 1

    >>> mu_law(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.,  0.,  1.])
    """
    return x.sign() * torch.log1p(_mu(levels) * x.abs()) / math.log1p(_mu(levels))


def mu_law_encode(x: Tensor, levels: int = 256) -> Tensor:
    """Amplitudes in -1..1 as whole numbers 0..levels - 1, int64. ITU-T G.711 has 256 of them.

    >>> mu_law_encode(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([  0, 128, 255])
    """
    y = mu_law(x.clamp(-1, 1), levels)
    return ((y + 1) / 2 * _mu(levels) + 0.5).floor().long()


def mu_law_decode(codes: Tensor, levels: int = 256) -> Tensor:
    r"""Amplitudes from whole numbers.

    .. math:: y = 2 c / \mu - 1, \qquad x = \mathrm{sign}(y)\, ((1 + \mu)^{|y|} - 1) / \mu

    >>> mu_law_decode(torch.tensor([0, 255]))
    tensor([-1.,  1.])
    """
    y = codes / _mu(levels) * 2 - 1
    return y.sign() * torch.expm1(y.abs() * math.log1p(_mu(levels))) / _mu(levels)


def _mu(levels: int) -> int:
    if levels < 2:
        raise WonderlandError(f"Mu-law has at least 2 levels, not {levels}.")
    return levels - 1
