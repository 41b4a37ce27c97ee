"""Kolmogorov-Arnold networks: a trained spline for every connection, and units that only add."""

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import at_least_one
from wonderland.nn.contract.mixer import Pointwise


@part
class KAN(Pointwise):
    r"""A layer whose connections are curves: B-splines on an even grid, beside a SiLU.

    .. math::
        y_i = \sum_j \varphi_{ij}(x_j), \qquad
        \varphi_{ij}(s) = w_{ij}\, \mathrm{silu}(s) + \sum_k c_{ijk} B_k(s)

    The `grid` intervals cover [-span, span]; there are grid + degree splines B_k, which fade to 0 outside, where the
    SiLU goes on. With `hidden` there are two such layers, through that many units. All curves of a layer are one matrix
    product. Shapes: x (..., dim) -> (..., dim); no state. Book: Alice 5.4. Paper: Liu et al., 2024.

    >>> KAN(dim=4, grid=3)(torch.zeros(2, 5, 4)).shape
    torch.Size([2, 5, 4])
    """

    def __init__(self, dim: int, *, hidden: int | None = None, grid: int = 5, degree: int = 3, span: float | int = 2.0):
        super().__init__()
        if grid < 1 or not 1 <= degree <= 5 or not span > 0:
            raise WonderlandError(
                f"KAN cannot be built with grid={grid}, degree={degree}, span={span}: "
                "grid is at least 1, degree is 1 to 5, span is positive."
            )
        at_least_one("KAN", hidden=hidden)
        self.dim = dim
        sizes = [dim, dim] if hidden is None else [dim, hidden, dim]
        self.layers = nn.ModuleList(
            Curves(inputs, outputs, grid, degree, float(span)) for inputs, outputs in pairwise(sizes)
        )

    def apply_to(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Curves(nn.Module):
    """One layer of curves from `inputs` to `outputs` numbers."""

    def __init__(self, inputs: int, outputs: int, grid: int, degree: int, span: float):
        super().__init__()
        self.degree, self.span, self.step = degree, span, 2 * span / grid
        self.grid = grid
        self.base = nn.Parameter(torch.empty(outputs, inputs))
        self.coefficients = nn.Parameter(torch.empty(outputs, inputs, grid + degree))
        nn.init.kaiming_uniform_(self.base, a=math.sqrt(5))
        # The curves begin close to the SiLU, with a little of every shape.
        nn.init.normal_(self.coefficients, std=0.1 / math.sqrt(inputs))

    def forward(self, x: Tensor) -> Tensor:
        # Knots are counted in steps from the left end of the grid: whole numbers, exact in every precision.
        knots = torch.arange(-self.degree, self.grid, device=x.device)
        basis = splines(((x + self.span) / self.step).unsqueeze(-1) - knots, self.degree)
        return F.linear(F.silu(x), self.base) + F.linear(basis.flatten(-2), self.coefficients.flatten(1))


def splines(u: Tensor, degree: int) -> Tensor:
    r"""The B-spline of a degree on the knots 0, 1, ..., degree + 1, at each number of u; 0 outside.

    .. math:: B(u) = \frac{1}{p!} \sum_{j=0}^{p+1} (-1)^j \binom{p+1}{j} (u - j)_+^p

    The spline is symmetric, so only the rising half of the sum is taken, where no large terms cancel.

    >>> splines(torch.tensor([0.0, 1.0, 2.0, 4.0]), 3)
    tensor([0.0000, 0.1667, 0.6667, 0.0000])
    """
    rising = torch.minimum(u, degree + 1 - u)
    total = F.relu(rising).pow(degree)
    for j in range(1, degree // 2 + 1):
        total = total + (-1) ** j * math.comb(degree + 1, j) * F.relu(rising - j).pow(degree)
    return total / math.factorial(degree)
