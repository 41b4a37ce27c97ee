"""Universal approximation in one dimension, by construction: two sigmoids make a bin, and a sum of bins any function."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import choice, count, positive


def bin_function(x: Tensor, height: float, center: float, width: float, slope: float = 1e4) -> Tensor:
    r"""About `height` on an interval and about 0 outside of it: the difference of two steep sigmoids.

    .. math::
        f(x) = a \, \sigma\left(w (x - s + \tfrac{\Delta}{2})\right) - a \, \sigma\left(w (x - s - \tfrac{\Delta}{2})\right)

    The book prints the two signs exchanged, which gives -a inside the bin.

    Shapes: x (...) -> (...). Book: Alice B.2 (E.B.2).

    >>> bin_function(torch.tensor([0.0, 0.3, 0.6]), height=2.0, center=0.3, width=0.2)
    tensor([0., 2., 0.])
    """
    positive("width", width)
    rising = torch.sigmoid(slope * (x - center + width / 2))
    falling = torch.sigmoid(slope * (x - center - width / 2))
    return height * (rising - falling)


def approximate(
    g: Callable[[Tensor], Tensor],
    bins: int,
    *,
    low: float = 0.0,
    high: float = 1.0,
    sharpness: float = 1e4,
    layout: str = "cover",
) -> nn.Sequential:
    r"""A network of 2m sigmoid neurons that approximates g on an interval, with constructed weights, not trained ones.

    .. math::
        f(x) = \sum_{i=1}^m g_i \left[ \sigma\left(w (x - s_i + \tfrac{\Delta}{2})\right)
        - \sigma\left(w (x - s_i - \tfrac{\Delta}{2})\right) \right], \qquad g_i = \frac{1}{\Delta} \int_{B_i} g

    "cover" divides the interval into m equal bins, :math:`s_i = \text{low} + (i - \frac12) \Delta`; the book prints
    centres at i/m, which leave half of the first bin uncovered. "ends" puts the first and the last centre on the ends of the
    interval, :math:`\Delta = (\text{high} - \text{low}) / (m - 1)`, as the book's figure does. The slope is
    :math:`w = \text{sharpness} / \Delta`, so that bins of any width have sharp edges.

    For a smooth g the mean squared error falls like :math:`1/m^2`,
    :math:`\frac{\Delta^2}{12} \overline{g'^2}`: neither exponentially nor like 1/m, as the book says. In d dimensions
    the same construction needs of the order of :math:`m^d` neurons.

    g maps a float64 vector to a vector. It is evaluated inside bins, never at an edge, so that sin(x)/x at 0 is possible. The
    network is in float64, with layers of 1, 2m and 1 units and no bias at its output.

    Shapes: g (k,) -> (k,); the network (k, 1) -> (k, 1). Book: Alice B.1-B.3, 5.2.1 (theorem 5.1); D2L 5.1.

    >>> net = approximate(torch.sin, bins=50, high=math.pi)
    >>> net
    Sequential(
      (0): Linear(in_features=1, out_features=100, bias=True)
      (1): Sigmoid()
      (2): Linear(in_features=100, out_features=1, bias=False)
    )
    >>> mean_squared_error(net, torch.sin, low=0.0, high=math.pi) < 2e-4
    True
    """
    choice("layout", layout, ("cover", "ends"))
    width = _interval(low, high) / (count("bins", bins, 1 if layout == "cover" else 2) - (layout == "ends"))
    index = torch.arange(bins, dtype=torch.float64)
    centers = low + width * (index + (0.5 if layout == "cover" else 0.0))
    heights = _averages(g, (centers - width / 2).clamp_min(low), (centers + width / 2).clamp_max(high))
    slope = positive("sharpness", sharpness) / width
    edges = torch.cat([centers - width / 2, centers + width / 2])
    hidden = nn.Linear(1, 2 * bins, dtype=torch.float64)
    out = nn.Linear(2 * bins, 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        hidden.weight.fill_(slope)
        hidden.bias.copy_(-slope * edges)
        out.weight.copy_(torch.cat([heights, -heights]).unsqueeze(0))
    return nn.Sequential(hidden, nn.Sigmoid(), out)


def approximate_with_relu(
    g: Callable[[Tensor], Tensor], bins: int, *, low: float = 0.0, high: float = 1.0
) -> nn.Sequential:
    r"""A network of m ReLU neurons that interpolates g linearly between m + 1 points.

    .. math::
        f(x) = g(x_0) + \sum_{i=0}^{m-1} (d_i - d_{i-1}) \max(0, x - x_i), \qquad
        d_i = \frac{g(x_{i+1}) - g(x_i)}{\Delta}, \quad d_{-1} = 0

    Half the neurons of the sigmoid bins, and for a smooth g an error that falls like :math:`1/m^4` instead of
    :math:`1/m^2`. It equals g at the points, so g has to be finite there.

    Shapes: g (k,) -> (k,); the network (k, 1) -> (k, 1). Book: Alice B.3 (other activations).

    >>> net = approximate_with_relu(torch.sin, bins=50, high=math.pi)
    >>> mean_squared_error(net, torch.sin, low=0.0, high=math.pi) < 1e-7
    True
    """
    width = _interval(low, high) / count("bins", bins)
    knots = torch.linspace(low, high, bins + 1, dtype=torch.float64)
    values = _values(g, knots)
    slopes = values.diff() / width
    hidden = nn.Linear(1, bins, dtype=torch.float64)
    out = nn.Linear(bins, 1, dtype=torch.float64)
    with torch.no_grad():
        hidden.weight.fill_(1.0)
        hidden.bias.copy_(-knots[:-1])
        out.weight.copy_(slopes.diff(prepend=slopes.new_zeros(1)).unsqueeze(0))
        out.bias.copy_(values[:1])
    return nn.Sequential(hidden, nn.ReLU(), out)


def mean_squared_error(
    net: Callable[[Tensor], Tensor], g: Callable[[Tensor], Tensor], *, low: float, high: float, points: int = 10_000
) -> float:
    r"""The mean squared error of a network as an approximation of g, over an interval.

    .. math:: \frac{1}{b - a} \int_a^b (f(x) - g(x))^2 dx

    by the midpoint rule. Shapes: net (k, 1) -> (k, 1), g (k,) -> (k,). Book: Alice B.3 (figure B.3).

    >>> mean_squared_error(lambda x: 0 * x, lambda x: torch.ones_like(x), low=0.0, high=2.0)
    1.0
    """
    step = _interval(low, high) / count("points", points)
    x = low + step * (torch.arange(points, dtype=torch.float64) + 0.5)
    with torch.no_grad():
        return float((net(x.unsqueeze(1)).squeeze(1) - _values(g, x)).square().mean())


def _interval(low: float, high: float) -> float:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise WonderlandError(f"`low` has to lie below `high`; they are {low} and {high}.")
    return high - low


def _averages(g: Callable[[Tensor], Tensor], left: Tensor, right: Tensor, points: int = 200) -> Tensor:
    inside = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    x = left.unsqueeze(1) + (right - left).unsqueeze(1) * inside
    return _values(g, x.flatten()).reshape(x.shape).mean(1)


def _values(g: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    values = g(x)
    if values.shape != x.shape:
        raise WonderlandError(f"`g` gave shape {tuple(values.shape)} for {tuple(x.shape)}: it has to be elementwise.")
    if not bool(values.isfinite().all()):
        where = float(x[~values.isfinite()][0])
        raise WonderlandError(f"`g` is not finite at {where:.6g}: it has to be continuous on the whole interval.")
    return values.detach()
