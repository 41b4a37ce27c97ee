"""Test functions: analytic functions of a vector with scalar values."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Subject:
    """A function and a point. The coordinates are sums of few powers of two, so that formulas have them exactly."""

    name: str
    function: Callable[[Tensor], Tensor]
    point: tuple[float, ...]

    @property
    def x(self) -> Tensor:
        return torch.tensor(self.point, dtype=torch.float64)


def product(x: Tensor) -> Tensor:
    """The product of all sines: the partial derivatives have nearly all of it in common."""
    return torch.sin(x).prod()


def valley(x: Tensor) -> Tensor:
    """Rosenbrock's: (1 - a)**2 + 100 (b - a**2)**2 for neighbours a, b."""
    a, b = x[:-1], x[1:]
    return ((1 - a) ** 2 + 100 * (b - a**2) ** 2).sum()


def nested(x: Tensor) -> Tensor:
    """a sin a, five times over."""
    a = x.sum()
    for _ in range(5):
        a = a * torch.sin(a)
    return a


def network(w: Tensor) -> Tensor:
    """The squared error of a network with three tanh units on two examples, as a function of its 12 weights."""
    x = torch.tensor([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5]], dtype=w.dtype)
    h = torch.tanh(x @ w[:9].reshape(3, 3))
    return ((h @ w[9:] - torch.tensor([1.0, -0.5], dtype=w.dtype)) ** 2).sum()


SUBJECTS = (
    Subject("product of 8 sines", product, (1.5, -0.75, 2.25, 0.625, -1.125, 0.875, 1.375, 3.0)),
    Subject("Rosenbrock, 6", valley, (1.25, -0.5, 0.75, 1.5, 0.25, -1.0)),
    Subject("x sin x, 5 times", nested, (2.125,)),
    Subject("network, 12", network, (0.5, -0.25, 1.0, 0.75, 0.125, -0.5, -1.25, 0.375, 0.625, 1.0, -1.5, 0.5)),
)
