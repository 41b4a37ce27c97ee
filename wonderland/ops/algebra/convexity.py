"""Convexity put to the test: points where a function bends the wrong way, or none found."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, count, numbers


@dataclass(frozen=True)
class Witness:
    """A chord that passes below the function: f(λa + (1-λ)b) exceeds λf(a) + (1-λ)f(b) by `excess`."""

    a: Tensor
    b: Tensor
    weight: float
    excess: float

    def __str__(self):
        return (
            f"not convex: between {self.a.tolist()} and {self.b.tolist()}, at weight {self.weight:.3f}, "
            f"the function lies {self.excess:.3g} above its chord"
        )


def find_nonconvexity(
    f: Callable[[Tensor], Tensor], low: Numbers, high: Numbers, *, samples: int = 4096, seed: int = 0
) -> Witness | None:
    r"""Search a box for a chord below the function; None says that none was found, not that none exists.

    .. math::
        f(\lambda a + (1 - \lambda) b) \le \lambda f(a) + (1 - \lambda) f(b), \qquad 0 \le \lambda \le 1

    A witness is a proof that f is not convex. Half of the chords span the box; the others are short, down to 1/1000 of
    it, since a small bump hides under long ones. An excess counts when it is above the rounding of the values.

    Shapes: f maps (k, n) -> (k,); low and high (n,). Book: D2L 12.2 (definition, below sets).

    >>> find_nonconvexity(lambda x: (x**2).sum(-1), low=[-1.0, -1.0], high=[1.0, 1.0]) is None
    True
    >>> find_nonconvexity(lambda x: torch.sin(x).sum(-1), low=[0.0], high=[3.0]).excess > 0.5
    True
    """
    lower, upper = _box(low, high)
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(count("samples", samples), len(lower), generator=generator, dtype=torch.float64)
    a = lower + (upper - lower) * draws
    b = lower + (upper - lower) * torch.rand(a.shape, generator=generator, dtype=torch.float64)
    shrink = 10 ** (-3 * torch.rand(samples, 1, generator=generator, dtype=torch.float64))
    b = torch.where(torch.arange(samples).unsqueeze(1) % 2 == 0, b, a + shrink * (b - a))
    weight = torch.rand(samples, generator=generator, dtype=torch.float64)
    chord, middle, size = _chord(f, a, b, weight)
    excess = middle - chord
    index = int(torch.where(excess > 1e-12 * size, excess, -torch.inf).argmax())
    if not bool(excess[index] > 1e-12 * size[index]):
        return None
    return Witness(a[index], b[index], float(weight[index]), float(excess[index]))


def _box(low: Numbers, high: Numbers) -> tuple[Tensor, Tensor]:
    lower, upper = numbers("low", low, 1), numbers("high", high, 1)
    if lower.shape != upper.shape or bool((lower >= upper).any()):
        raise WonderlandError("`low` has to lie below `high` in every coordinate, and have as many of them.")
    return lower, upper


def _chord(f: Callable[[Tensor], Tensor], a: Tensor, b: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Values on the chord, values of f below it, and the size of the numbers that were subtracted."""
    share = weight.unsqueeze(1)
    ends_a, ends_b, middle = _values(f, a), _values(f, b), _values(f, share * a + (1 - share) * b)
    size = torch.stack([ends_a.abs(), ends_b.abs(), middle.abs()]).amax(0).clamp_min(1.0)
    return weight * ends_a + (1 - weight) * ends_b, middle, size


def _values(f: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    values = f(points)
    if tuple(values.shape) != (len(points),):
        raise WonderlandError(
            f"`f` gave shape {tuple(values.shape)} for points {tuple(points.shape)}: it has to give one number a row."
        )
    if bool(values.isnan().any()):
        where = points[int(values.isnan().nonzero()[0])].tolist()
        raise WonderlandError(f"`f` gave NaN at {where}: choose `low` and `high` inside its domain.")
    return values.detach().to(torch.float64)


def find_negative_curvature(
    f: Callable[[Tensor], Tensor], low: Numbers, high: Numbers, *, samples: int = 64, seed: int = 0
) -> tuple[Tensor, float] | None:
    r"""Search a box for a point whose Hessian has a negative eigenvalue: the second-derivative test of convexity.

    .. math:: f \text{ convex} \iff \nabla^2 f(x) \succeq 0 \text{ for all } x

    Gives the point (n,) with its smallest eigenvalue, or None. Needs a twice differentiable f; `find_nonconvexity` does
    not. Shapes: f maps (n,) -> one number. Book: D2L 12.2 (second derivatives).

    >>> point, bend = find_negative_curvature(lambda x: x[0] * x[1], low=[-1.0, -1.0], high=[1.0, 1.0])
    >>> bend
    -1.0
    """
    lower, upper = _box(low, high)
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(count("samples", samples), len(lower), generator=generator, dtype=torch.float64)
    points = lower + (upper - lower) * draws
    hessians = torch.stack([torch.autograd.functional.hessian(f, point) for point in points])  # pyright: ignore
    smallest = torch.linalg.eigvalsh(hessians)[:, 0]
    index = int(smallest.argmin())
    size = float(hessians[index].norm())
    if not bool(smallest[index] < -1e-10 * max(size, 1e-300)):
        return None
    return points[index], float(smallest[index])


def jensen_gap(f: Callable[[Tensor], Tensor], points: Numbers, weights: Numbers | None = None) -> float:
    r"""The mean of the values minus the value at the mean: never negative for a convex function.

    .. math:: \sum_i \alpha_i f(x_i) - f\left(\sum_i \alpha_i x_i\right) \ge 0, \qquad \alpha_i \ge 0, \; \sum_i \alpha_i = 1

    Shapes: f maps (k, n) -> (k,); points (k, n); weights (k,), equal ones if not given. Book: D2L 12.2 (Jensen).

    >>> jensen_gap(lambda x: (x**2).sum(-1), [[-1.0], [1.0]])
    1.0
    """
    rows = numbers("points", points, 2)
    share = torch.full((len(rows),), 1 / len(rows), dtype=torch.float64)
    if weights is not None:
        share = numbers("weights", weights, 1)
        if len(share) != len(rows):
            raise WonderlandError(f"`weights` has {len(share)} entries for {len(rows)} points.")
        if bool((share < 0).any()) or abs(float(share.sum()) - 1) > 1e-9:
            raise WonderlandError(
                f"`weights` has to be non-negative and sum to 1; its sum is {float(share.sum()):.6g}, "
                f"its smallest entry {float(share.min()):.6g}."
            )
    return float(share @ _values(f, rows) - _values(f, (share @ rows).unsqueeze(0)))
