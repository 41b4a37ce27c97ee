"""Gradient descent with and without momentum, with all points of the path."""

from collections.abc import Callable

import torch
from torch import Tensor

from wonderland import autodiff

Function = Callable[[Tensor], Tensor]


def descend(f: Function, start: Tensor, rate: float, steps: int, momentum: float = 0.0) -> Tensor:
    r"""The path of gradient descent with momentum.

    .. math:: g_0 = 0, \qquad g_t = -\eta \nabla f(x_{t-1}) + \lambda g_{t-1}, \qquad x_t = x_{t-1} + g_t

    Shapes: start (...) -> (steps + 1, ...); many starts go together when f gives a number for each.
    Book: Alice 2.3 (E.2.27) and 2.3.2; D2L 12.3 and 12.6 (the same for a constant rate).
    """
    gradient = autodiff.grad(lambda x: f(x).sum())
    x, move, path = start, torch.zeros_like(start), [start]
    for _ in range(steps):
        move = -rate * gradient(x) + momentum * move
        x = x + move
        path.append(x)
    return torch.stack(path)


def steepest(f: Function, start: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    r"""Gradient descent on a quadratic with exact line search: its points and gradients.

    .. math:: \eta_t = \frac{g_t^\top g_t}{g_t^\top H g_t}

    Consecutive gradients are orthogonal. The product with the Hessian needs no Hessian. Book: Alice 2.3.
    """
    gradient = autodiff.grad(f)
    x, path, gradients = start, [start], [gradient(start)]
    for _ in range(steps):
        g = gradients[-1]
        x = x - (g @ g) / (g @ autodiff.hvp(f, (x,), (g,))[1]) * g
        path.append(x)
        gradients.append(gradient(x))
    return torch.stack(path), torch.stack(gradients)


def lowest_curvature(f: Function, points: Tensor) -> Tensor:
    """The smaller eigenvalue of the Hessian at each of many points of the plane: (n, 2) -> (n)."""
    units = [torch.eye(2, dtype=points.dtype)[k].expand_as(points) for k in range(2)]
    columns = [autodiff.hvp(lambda x: f(x).sum(), (points,), (unit,))[1] for unit in units]
    return torch.linalg.eigvalsh(torch.stack(columns, -1))[:, 0]
