"""Find the stationary points of a function in a box, and classify them."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland import autodiff

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Point:
    """A stationary point: its place, value, kind, and the eigenvalues of the Hessian there, smallest first."""

    place: tuple[float, ...]
    value: float
    kind: str
    curvatures: tuple[float, ...]


def kind(curvatures: Tensor, flat: float = 1e-7) -> str:
    """The kind of a stationary point by the signs of the Hessian's eigenvalues; "flat" if one is 0.

    Book: Alice 2.3.1 (D.2.10); D2L 12.1.

    >>> kind(torch.tensor([0.5, 2.0])), kind(torch.tensor([-1.0, 2.0])), kind(torch.tensor([0.0, 2.0]))
    ('minimum', 'saddle', 'flat')
    """
    down, up = (curvatures < -flat).any().item(), (curvatures > flat).any().item()
    if down and up:
        return "saddle"
    if (curvatures.abs() <= flat).any():
        return "flat"
    return "maximum" if down else "minimum"


def classify(f: Function, place: Tensor) -> Point:
    """A stationary point with its kind: the Hessian is that of `autodiff.hessian`."""
    table = autodiff.hessian(lambda flat: f(flat.reshape(place.shape)))(place.reshape(-1))
    curvatures = torch.linalg.eigvalsh(table)
    return Point(tuple(place.reshape(-1).tolist()), f(place).item(), kind(curvatures), tuple(curvatures.tolist()))


def curvature(f: Function, points: Tensor) -> Tensor:
    """The Hessian at each of many points, (n, d) -> (n, d, d), column by column as Hessian-vector products."""
    units = torch.eye(points.shape[1], dtype=points.dtype)
    columns = [autodiff.hvp(lambda x: f(x).sum(), (points,), (unit.expand_as(points),))[1] for unit in units]
    return torch.stack(columns, -1)


def stationary(f: Function, low: float, high: float, side: int = 15, steps: int = 15) -> Tensor:
    r"""All stationary points of a function of the plane in a square, edges included: (n, 2).

    Newton's method on the gradient, :math:`x \leftarrow x - H^{-1} \nabla f`, from a grid of starts at once: it is drawn
    to saddles and maxima as much as to minima.
    """
    edge = torch.linspace(low, high, side, dtype=torch.float64)
    x = torch.cartesian_prod(edge, edge) + 0.01
    gradient = autodiff.grad(lambda x: f(x).sum())
    for _ in range(steps):
        # Far from a stationary point the Hessian may be singular; least squares then gives a small step.
        move = torch.linalg.lstsq(curvature(f, x), gradient(x).unsqueeze(-1)).solution.squeeze(-1)
        x = x - move * (1 / move.norm(dim=1, keepdim=True).clamp(min=1e-300)).clamp(max=1.0)
    still = gradient(x).norm(dim=1) < 1e-10
    inside = ((x > low - 1e-9) & (x < high + 1e-9)).all(1)
    distinct: list[Tensor] = []
    for point in x[still & inside]:
        if all((point - other).norm() > 1e-6 for other in distinct):
            distinct.append(point)
    return torch.stack(distinct)
