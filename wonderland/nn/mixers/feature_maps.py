"""Feature maps: functions whose inner products stand in for the exponential of attention."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.arguments import Checked, at_least_one

LARGEST = 30.0  # e^30 squared still leaves float32 room for a sum of a million terms


@part
class EluPlusOne(Checked, nn.Module):
    r"""elu(x) + 1: positive, and linear above 0. Book: Alice 13.1. Paper: Katharopoulos et al., 2020."""

    def __init__(self, dim: int):
        super().__init__()
        self.features = dim

    def forward(self, x: Tensor) -> Tensor:
        return F.elu(x) + 1


@part
class ReluFeatures(Checked, nn.Module):
    r"""max(x, 0): sparse; a query with no feature in common with any key gives 0."""

    def __init__(self, dim: int):
        super().__init__()
        self.features = dim

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x)


@part
class ExpFeatures(Checked, nn.Module):
    r"""e^x of each entry, cut off at e^30 so that sums stay finite."""

    def __init__(self, dim: int):
        super().__init__()
        self.features = dim

    def forward(self, x: Tensor) -> Tensor:
        return torch.exp(x.clamp(max=LARGEST))


@part
class RandomFeatures(Checked, nn.Module):
    r"""Positive random features: inner products that on average are the exponential of softmax attention.

    .. math::
        \phi(x) = \frac{1}{\sqrt{m}}\, e^{\Omega x - \|x\|^2 / 2}, \qquad E[\phi(x)^\top \phi(y)] = e^{x^\top y}

    The directions are drawn once, orthogonal in groups, and kept with the weights. Inputs are scaled by :math:`k^{-1/4}`,
    so that the average is attention with its usual scale. The book's cosines can be negative, and a sum of them is no safe
    denominator; these cannot. Paper: Choromanski et al., 2021.

    >>> RandomFeatures(4, features=6)(torch.zeros(1, 4)).shape
    torch.Size([1, 6])
    """

    directions: Tensor

    def __init__(self, dim: int, *, features: int | None = None):
        super().__init__()
        at_least_one("RandomFeatures", dim=dim, features=features)
        self.features = 4 * dim if features is None else features
        groups = [_rotation(dim) for _ in range(-(-self.features // dim))]
        directions = torch.cat(groups)[: self.features] * torch.randn(self.features, dim).norm(dim=1, keepdim=True)
        self.register_buffer("directions", directions)

    def forward(self, x: Tensor) -> Tensor:
        x = x * x.shape[-1] ** -0.25
        exponent = x @ self.directions.t() - x.square().sum(-1, keepdim=True) / 2
        return torch.exp(exponent.clamp(max=LARGEST)) / math.sqrt(self.features)


def _rotation(dim: int) -> Tensor:
    """An orthogonal matrix, all directions alike: the factor alone would prefer some signs."""
    q, r = torch.linalg.qr(torch.randn(dim, dim))
    return q * r.diagonal().sign()
