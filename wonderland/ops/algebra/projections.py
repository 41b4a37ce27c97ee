"""Projections: the nearest point of a convex set."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers, positive


def project_l2(x: Numbers, radius: float = 1.0) -> Tensor:
    r"""The nearest point of the Euclidean ball: what is too long is cut to length.

    .. math:: \operatorname{Proj}(x) = x \cdot \min\left(1, \frac{\theta}{\|x\|_2}\right)

    Clipping a gradient by its norm is this projection. Shapes: (..., n) -> (..., n). Book: D2L 12.2 (projections).

    >>> project_l2([3.0, 4.0])
    tensor([0.6000, 0.8000], dtype=torch.float64)
    """
    vectors = numbers("x", x)
    length = vectors.norm(dim=-1, keepdim=True)
    radius = positive("radius", radius)
    return torch.where(length > radius, vectors * (radius / length.clamp_min(radius)), vectors)


def project_linf(x: Numbers, radius: float = 1.0) -> Tensor:
    r"""The nearest point of the cube around zero: each coordinate is clipped.

    .. math:: \operatorname{Proj}(x)_i = \min(\theta, \max(-\theta, x_i))

    Shapes: (..., n) -> (..., n). Book: D2L 12.2.

    >>> project_linf([3.0, -0.5])
    tensor([ 1.0000, -0.5000], dtype=torch.float64)
    """
    radius = positive("radius", radius)
    return numbers("x", x).clamp(-radius, radius)


def project_box(x: Numbers, low: Numbers, high: Numbers) -> Tensor:
    r"""The nearest point between two corners.

    .. math:: \operatorname{Proj}(x)_i = \min(u_i, \max(l_i, x_i))

    Shapes: x (..., n), low and high broadcast to it -> (..., n). Book: D2L 12.2.

    >>> project_box([3.0, -2.0], low=0.0, high=[1.0, 5.0])
    tensor([1., 0.], dtype=torch.float64)
    """
    vectors, lower, upper = numbers("x", x), numbers("low", low), numbers("high", high)
    if bool((lower > upper).any()):
        raise WonderlandError("`low` lies above `high`: the box is empty.")
    return vectors.maximum(lower).minimum(upper)


def project_simplex(x: Numbers, total: float = 1.0) -> Tensor:
    r"""The nearest point with non-negative coordinates that sum to `total`.

    .. math::
        \operatorname{Proj}(x)_i = \max(0, x_i - \tau), \qquad \tau \text{ such that } \sum_i \max(0, x_i - \tau) = s

    Sorting finds the threshold: the k largest coordinates stay, for the largest k with
    :math:`x_{(k)} > \tau_k = (\sum_{i \le k} x_{(i)} - s) / k`. O(n log n).

    Shapes: (..., n) -> (..., n). Book: Alice 4.2.1 (the simplex); D2L 12.2. Paper: Duchi et al., 2008.

    >>> project_simplex([0.5, 0.5, -1.0])
    tensor([0.5000, 0.5000, 0.0000], dtype=torch.float64)
    >>> project_simplex([2.0, 0.0, 0.0])
    tensor([1., 0., 0.], dtype=torch.float64)
    """
    vectors = numbers("x", x)
    total = positive("total", total)
    # Only differences count, and close to zero they keep their digits.
    vectors = vectors - vectors.amax(-1, keepdim=True)
    ordered = vectors.sort(dim=-1, descending=True).values
    rank = torch.arange(1, vectors.shape[-1] + 1, dtype=vectors.dtype)
    thresholds = (ordered.cumsum(-1) - total) / rank
    kept = (ordered > thresholds).sum(-1, keepdim=True)
    return (vectors - thresholds.gather(-1, kept - 1)).clamp_min(0.0)


def project_l1(x: Numbers, radius: float = 1.0) -> Tensor:
    r"""The nearest point of the ball of the sum of absolute values: small coordinates become exactly zero.

    .. math::
        \operatorname{Proj}(x) = \operatorname{sign}(x) \odot \operatorname{Proj}_{\Delta_\theta}(|x|)
        \quad \text{where } \|x\|_1 > \theta

    Shapes: (..., n) -> (..., n). Book: D2L 12.2. Paper: Duchi et al., 2008.

    >>> project_l1([2.0, 0.5, -0.1])
    tensor([1., 0., -0.], dtype=torch.float64)
    """
    vectors = numbers("x", x)
    radius = positive("radius", radius)
    outside = vectors.abs().sum(-1, keepdim=True) > radius
    return torch.where(outside, vectors.sign() * project_simplex(vectors.abs(), radius), vectors)
