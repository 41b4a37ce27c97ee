"""Test functions of the books; those of two variables map (..., 2) to (...)."""

import math

import torch
from torch import Tensor


def wave(x: Tensor) -> Tensor:
    """x sin(2x): minima at 0 and at 2.4566, a maximum between them. Alice 2.3.2."""
    return x * torch.sin(2 * x)


def hills(x: Tensor) -> Tensor:
    """sin(x1) cos(x2) + sin(x1 / 2) cos(x2 / 2). Alice, exercise of chapter 2."""
    a, b = x[..., 0], x[..., 1]
    return torch.sin(a) * torch.cos(b) + torch.sin(a / 2) * torch.cos(b / 2)


def bowl(x: Tensor) -> Tensor:
    """x1**2 + 2 x2**2. D2L 12.3."""
    return x[..., 0] ** 2 + 2 * x[..., 1] ** 2


def valley(x: Tensor) -> Tensor:
    """0.1 x1**2 + 2 x2**2: twenty times steeper along x2. D2L 12.6."""
    return 0.1 * x[..., 0] ** 2 + 2 * x[..., 1] ** 2


def turned_valley(x: Tensor) -> Tensor:
    """0.1 (x1 + x2)**2 + 2 (x1 - x2)**2: the valley, rotated by 45 degrees. D2L 12.7."""
    a, b = x[..., 0], x[..., 1]
    return 0.1 * (a + b) ** 2 + 2 * (a - b) ** 2


def ripple(x: Tensor) -> Tensor:
    """x cos(0.15 pi x): many local minima. D2L 12.3."""
    return x * torch.cos(0.15 * math.pi * x)


def basin(x: Tensor) -> Tensor:
    """cosh(x / 2): convex, its minimum at 0. D2L 12.3."""
    return torch.cosh(0.5 * x)
