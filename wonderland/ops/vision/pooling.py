"""Pooling beyond mean and maximum: a power mean between the two, and a blur before a stride."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def generalised_mean_pool(x: Tensor, power: Tensor | float = 3.0, *, eps: float = 1e-6) -> Tensor:
    r"""The power mean over a map: the mean at power 1, nearly the maximum at a large one.

    .. math:: y_c = \left( \frac{1}{hw} \sum_{ij} x_{cij}^p \right)^{1/p}

    Values below `eps` count as eps. Shapes: x (b, c, h, w) -> (b, c). Paper: Radenovic et al., 2018.

    >>> generalised_mean_pool(torch.tensor([[[[1.0, 3.0]]]]), 1.0).item()
    2.0
    """
    return x.clamp_min(eps).pow(power).mean((2, 3)).pow(1 / power)


def blur_pool(x: Tensor, *, stride: int = 2, width: int = 3) -> Tensor:
    r"""Each channel smoothed with a binomial kernel, then every `stride`-th pixel: less changes when the image moves.

    Borders are reflected. Shapes: x (b, c, h, w) -> (b, c, ceil(h / stride), ceil(w / stride)). Paper: Zhang, 2019.

    >>> blur_pool(torch.ones(1, 2, 5, 5)).shape
    torch.Size([1, 2, 3, 3])
    """
    line = torch.tensor([math.comb(width - 1, k) for k in range(width)], dtype=x.dtype, device=x.device)
    kernel = torch.outer(line, line) / line.sum() ** 2
    left, right = (width - 1) // 2, width // 2
    padded = F.pad(x, (left, right, left, right), mode="reflect")
    return F.conv2d(padded, kernel.expand(x.shape[1], 1, -1, -1), stride=stride, groups=x.shape[1])
