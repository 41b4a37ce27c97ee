"""Steps that know the curvature: the whole Hessian, its absolute value, or only its diagonal."""

from collections.abc import Callable

import torch
from torch import Tensor

from wonderland import autodiff

Function = Callable[[Tensor], Tensor]
Curvature = Callable[[], Tensor]
Step = Callable[[Tensor, Curvature], Tensor]


def plain(slope: Tensor, curvature: Curvature) -> Tensor:
    """The gradient itself: gradient descent."""
    return slope


def whole(slope: Tensor, curvature: Curvature) -> Tensor:
    r"""Newton's step, :math:`H^{-1} \nabla f`: exact on quadratics, drawn to saddles and maxima too. D2L 12.3."""
    return torch.linalg.solve(curvature(), slope)


def absolute(slope: Tensor, curvature: Curvature) -> Tensor:
    r"""Newton's step with the absolute values of the eigenvalues, :math:`|H|^{-1} \nabla f`: always downward. D2L 12.3."""
    values, vectors = torch.linalg.eigh(curvature())
    return vectors @ ((vectors.T @ slope) / values.abs())


def diagonal(slope: Tensor, curvature: Curvature) -> Tensor:
    r"""Preconditioning, :math:`\operatorname{diag}(H)^{-1} \nabla f`: a rate for each coordinate. D2L 12.3."""
    return slope / curvature().diagonal()


def follow(f: Function, start: Tensor, steps: int, step: Step = whole, rate: float = 1.0) -> Tensor:
    """The path of a method, :math:`x \\leftarrow x - \\eta \\, \\text{step}`: (steps + 1, d) from a start (d)."""
    slope, curvature = autodiff.grad(f), autodiff.hessian(f)
    path = [start]
    for _ in range(steps):
        x = path[-1]
        path.append(x - rate * step(slope(x), lambda x=x: curvature(x)))
    return torch.stack(path)


def condition(table: Tensor) -> float:
    """The largest eigenvalue over the smallest."""
    values = torch.linalg.eigvalsh(table)
    return (values[-1] / values[0]).item()


def preconditioned(table: Tensor) -> Tensor:
    r"""What the curvature becomes, :math:`\operatorname{diag}^{-1/2}(Q)\, Q \operatorname{diag}^{-1/2}(Q)`. D2L 12.7."""
    scale = table.diagonal().rsqrt()
    return scale[:, None] * table * scale


def steps_until(path: Tensor, share: float) -> int:
    """How many steps until the distance to the origin is a share of what it was."""
    near = path.norm(dim=1) <= share * path[0].norm()
    return int(near.int().argmax()) if near.any() else -1
