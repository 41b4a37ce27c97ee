"""Information of continuous variables, estimated from the distances between samples."""

import math

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, count, numbers


def neighbour_entropy(samples: Numbers, *, k: int = 3) -> float:
    r"""Differential entropy, in nats, from the distance of each sample to its k-th nearest neighbour.

    .. math::
        \hat h = \psi(n) - \psi(k) + \frac{d}{n} \sum_i \log(2 \epsilon_i)

    :math:`\epsilon_i` in the largest-coordinate distance, whose ball of radius ε has the volume :math:`(2\epsilon)^d`.
    May be negative. O(n^2) memory. Repeated samples are refused: they have no density.

    Shapes: samples (n, d) or (n,) -> one number. Book: D2L 22.11 (differential entropy). Paper: Kozachenko and
    Leonenko, 1987.

    >>> samples = torch.rand(2000, generator=torch.Generator().manual_seed(0))
    >>> abs(neighbour_entropy(samples)) < 0.05
    True
    """
    points = _points("samples", samples)
    n, d = points.shape
    nearest = _distances(points).kthvalue(_neighbours(k, n) + 1, dim=1).values
    if bool((nearest == 0).any()):
        raise WonderlandError(
            f"`samples` holds more than {k} equal rows: samples of a continuous variable do not repeat."
        )
    return float(_psi(n) - _psi(k) + d * (2 * nearest).log().mean())


def neighbour_information(x: Numbers, y: Numbers, *, k: int = 3) -> float:
    r"""Mutual information of two continuous variables, in nats, from nearest neighbours in the joint space.

    .. math::
        \hat I = \psi(n) + \psi(k) - \frac1n \sum_i \left[ \psi(n_x(i) + 1) + \psi(n_y(i) + 1) \right]

    where :math:`n_x(i)` counts the samples closer to i in x than its k-th neighbour in both. Clamped at 0, as in
    scikit-learn. Scale x and y alike when their units differ. O(n^2) memory.

    Shapes: x (n, d) or (n,), y (n, e) or (n,) -> one number. Book: D2L 22.11. Paper: Kraskov et al., 2004 (algorithm 1).

    >>> generator = torch.Generator().manual_seed(0)
    >>> x, noise = torch.randn(2, 1000, generator=generator)
    >>> abs(neighbour_information(x, 0.8 * x + 0.6 * noise) + 0.5 * math.log(1 - 0.8**2)) < 0.1
    True
    """
    first, second = _points("x", x), _points("y", y)
    n = len(first)
    if len(second) != n:
        raise WonderlandError(f"`y` has {len(second)} samples where `x` has {n}.")
    distances_x, distances_y = _distances(first), _distances(second)
    radius = distances_x.maximum(distances_y).kthvalue(_neighbours(k, n) + 1, dim=1).values.unsqueeze(1)
    # Each row counts itself, which is the + 1 of the formula; equal samples leave the radius at 0 and still count it.
    close_x, close_y = (((distances < radius).sum(1)).clamp_min(1) for distances in (distances_x, distances_y))
    counted = _psi(close_x).mean() + _psi(close_y).mean()
    return max(0.0, float(_psi(n) + _psi(k) - counted))


def _points(name: str, value: Numbers) -> Tensor:
    points = numbers(name, value)
    return points.unsqueeze(1) if points.dim() == 1 else numbers(name, value, 2)


def _neighbours(k: int, n: int) -> int:
    if count("k", k) >= n:
        raise WonderlandError(f"`k` is {k}, and each of {n} samples has only {n - 1} neighbours.")
    return k


def _distances(points: Tensor) -> Tensor:
    return torch.cdist(points, points, p=math.inf)


def _psi(value: int | Tensor) -> Tensor:
    return torch.digamma(torch.as_tensor(value, dtype=torch.float64))
