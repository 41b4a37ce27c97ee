"""Synthetic regression data with known weights."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, count, numbers


def synthetic(
    weights: Numbers, bias: float = 0.0, *, rows: int = 1000, noise: float = 0.01, seed: int = 0
) -> tuple[Tensor, Tensor]:
    r"""Standard normal rows, and targets of known weights with normal noise of standard deviation `noise`.

    .. math:: y = X w + b + \epsilon, \qquad X_{ij} \sim N(0, 1), \qquad \epsilon \sim N(0, s^2)

    Shapes: weights (c,) -> X (n, c), y (n,). Book: D2L 3.3, where w is (2, -3.4), b 4.2 and s 0.01.

    >>> X, y = synthetic([2.0, -3.4], 4.2, rows=5, noise=0.0)
    >>> torch.allclose(X @ torch.tensor([2.0, -3.4], dtype=X.dtype) + 4.2, y)
    True
    """
    known = numbers("weights", weights, 1)
    offset, deviation = float(numbers("bias", bias, 0)), float(numbers("noise", noise, 0))
    if deviation < 0:
        raise WonderlandError(f"`noise` has to be 0 or more, not {deviation:g}.")
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(count("rows", rows), len(known), generator=generator, dtype=torch.float64)
    return X, X @ known + offset + deviation * torch.randn(len(X), generator=generator, dtype=torch.float64)
