"""Second-order steps: with the full Hessian, its absolute value, or its diagonal."""

from collections.abc import Callable

import torch
from torch import Tensor

from wonderland import autodiff

Function = Callable[[Tensor], Tensor]
Curvature = Callable[[], Tensor]
Step = Callable[[Tensor, Curvature], Tensor]


def plain(gradient: Tensor, curvature: Curvature) -> Tensor:
    """The gradient itself: gradient descent."""
    return gradient


def whole(gradient: Tensor, curvature: Curvature) -> Tensor:
    r"""Newton's step, :math:`H^{-1} \nabla f`: exact on quadratics, also attracted by saddles and maxima. D2L 12.3."""
    return torch.linalg.solve(curvature(), gradient)


def absolute(gradient: Tensor, curvature: Curvature) -> Tensor:
    r"""Newton's step with the absolute values of the eigenvalues, :math:`|H|^{-1} \nabla f`: always downward. D2L 12.3."""
    values, vectors = torch.linalg.eigh(curvature())
    return vectors @ ((vectors.T @ gradient) / values.abs())


def diagonal(gradient: Tensor, curvature: Curvature) -> Tensor:
    r"""Preconditioning, :math:`\operatorname{diag}(H)^{-1} \nabla f`: a rate for each coordinate. D2L 12.3."""
    return gradient / curvature().diagonal()


def follow(f: Function, start: Tensor, steps: int, step: Step = whole, rate: float = 1.0) -> Tensor:
    """The path of a method, :math:`x \\leftarrow x - \\eta \\, \\text{step}`: (steps + 1, d) from a start (d)."""
    gradient, curvature = autodiff.grad(f), autodiff.hessian(f)
    path = [start]
    for _ in range(steps):
        x = path[-1]
        path.append(x - rate * step(gradient(x), lambda x=x: curvature(x)))
    return torch.stack(path)


def condition(table: Tensor) -> float:
    """The largest eigenvalue over the smallest."""
    values = torch.linalg.eigvalsh(table)
    return (values[-1] / values[0]).item()


def preconditioned(table: Tensor) -> Tensor:
    r"""The preconditioned curvature, :math:`\operatorname{diag}^{-1/2}(Q)\, Q \operatorname{diag}^{-1/2}(Q)`. D2L 12.7."""
    scale = table.diagonal().rsqrt()
    return scale[:, None] * table * scale


def steps_until(path: Tensor, share: float) -> int:
    """The number of steps until the distance to the origin falls to a share of its initial value."""
    near = path.norm(dim=1) <= share * path[0].norm()
    return int(near.int().argmax()) if near.any() else -1
