"""A small network on two half moons, as a function of one vector of weights, or of a batch of such vectors."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

from wonderland import autodiff

HIDDEN, DECAY = 6, 1e-3
SIZE = 4 * HIDDEN + 1
Loss = Callable[[Tensor], Tensor]


def moons(samples: int = 60) -> tuple[Tensor, Tensor]:
    """Points (n, 2) on two half circles that interlock, and the sign (n) of their class."""
    generator = torch.Generator().manual_seed(1)
    angle = math.pi * torch.rand(samples, dtype=torch.float64, generator=generator)
    upper = torch.arange(samples) % 2 == 0
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    noise = 0.08 * torch.randn(samples, 2, dtype=torch.float64, generator=generator)
    return torch.stack([x, y], 1) - torch.tensor([0.5, 0.25]) + noise, torch.where(upper, 1.0, -1.0).double()


def score(weights: Tensor, points: Tensor) -> Tensor:
    """The network's logits: weights (..., SIZE), points (n, 2) -> (..., n)."""
    inner, rest = weights[..., : 2 * HIDDEN], weights[..., 2 * HIDDEN :]
    first = inner.unflatten(-1, (2, HIDDEN))
    h = torch.tanh(points @ first + rest[..., None, :HIDDEN])
    return (h @ rest[..., HIDDEN : 2 * HIDDEN, None]).squeeze(-1) + rest[..., 2 * HIDDEN :]


def loss() -> Loss:
    """The regularised logistic loss as a function of weights (..., SIZE) -> (...)."""
    points, sign = moons()

    def f(weights: Tensor) -> Tensor:
        return softplus(-sign * score(weights, points)).mean(-1) + DECAY / 2 * (weights**2).sum(-1)

    return f


def start() -> Tensor:
    return 0.8 * torch.randn(SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def train(f: Loss, weights: Tensor, steps: int = 400, rate: float = 0.5, momentum: float = 0.9) -> Tensor:
    """The path of descent with momentum: (steps + 1, SIZE)."""
    gradient, move, path = autodiff.grad(f), torch.zeros_like(weights), [weights]
    for _ in range(steps):
        move = momentum * move - rate * gradient(path[-1])
        path.append(path[-1] + move)
    return torch.stack(path)


def polish(f: Loss, weights: Tensor, steps: int = 40) -> Tensor:
    """Newton steps with absolute eigenvalues and a line search, until the gradient vanishes."""
    gradient, curvature = autodiff.grad(f), autodiff.hessian(f)
    for _ in range(steps):
        g = gradient(weights)
        if g.norm() < 1e-12:
            break
        values, vectors = torch.linalg.eigh(curvature(weights))
        move, size = vectors @ ((vectors.T @ g) / values.abs()), 1.0
        while size > 1e-6 and f(weights - size * move) > f(weights) + 1e-15:
            size /= 2
        weights = weights - size * move
    return weights


def random_direction(weights: Tensor, seed: int) -> Tensor:
    """A random direction, scaled so that each unit's weights, and each other group, have the norm that they have in the network.

    Without that, a plane would show the scale of the weights and not the shape of the loss. Paper: Li et al., 2018.
    """
    drawn = torch.randn(SIZE, dtype=weights.dtype, generator=torch.Generator().manual_seed(seed))
    places = torch.arange(SIZE)
    groups = [places[unit : 2 * HIDDEN : HIDDEN] for unit in range(HIDDEN)]
    groups += [places[2 * HIDDEN : 3 * HIDDEN], places[3 * HIDDEN : 4 * HIDDEN], places[4 * HIDDEN :]]
    for group in groups:
        drawn[group] *= weights[group].norm() / drawn[group].norm()
    return drawn


def swapped(weights: Tensor) -> Tensor:
    """The same function with permuted hidden units."""
    order = torch.arange(HIDDEN).roll(1)
    inner, bias, outer, last = weights.split([2 * HIDDEN, HIDDEN, HIDDEN, 1])
    return torch.cat([inner.reshape(2, HIDDEN)[:, order].reshape(-1), bias[order], outer[order], last])
