"""Activations with a shape of their own: Swish with a slope, adaptive piecewise linear, kernel activation functions."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked


@part
class Swish(Checked, nn.Module):
    r"""A gate by the input itself, with a learned steepness for each feature.

    .. math:: y = x \, \sigma(\beta x)

    Shapes: x (..., dim) -> (..., dim). Book: Alice 5.4. Paper: Ramachandran et al., 2017.

    >>> Swish(dim=2)(torch.tensor([[0.0, 1.0]])).shape
    torch.Size([1, 2])
    """

    def __init__(self, dim: int):
        super().__init__()
        self.beta = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.beta * x)


@part
class APL(Checked, nn.Module):
    r"""Adaptive piecewise linear: ReLU and learned hinges.

    .. math:: y = \max(0, x) + \sum_{k} a_k \max(0, -x + b_k)

    Shapes: x (..., dim) -> (..., dim), with a and b (hinges, dim). Book: Alice 5.4. Paper: Agostinelli et al., 2015.

    >>> APL(dim=2)(torch.tensor([[-1.0, 3.0]])).tolist()
    [[0.0, 3.0]]
    """

    def __init__(self, dim: int, hinges: int = 3):
        super().__init__()
        if hinges < 1:
            raise WonderlandError("APL needs at least one hinge.")
        self.slope = nn.Parameter(torch.zeros(hinges, dim))
        self.place = nn.Parameter(torch.linspace(-1, 1, hinges)[:, None].repeat(1, dim))

    def forward(self, x: Tensor) -> Tensor:
        return x.relu() + (self.slope * (self.place - x[..., None, :]).relu()).sum(-2)


@part
class KAF(Checked, nn.Module):
    r"""Kernel activation function: a sum of Gaussians around a fixed grid, with learned weights for each feature.

    .. math:: y = \sum_{k} \alpha_k \exp(-\gamma (x - d_k)^2), \qquad \gamma = \frac{1}{6 \Delta^2}

    It begins as the closest fit to ELU. Shapes: x (..., dim) -> (..., dim), with weights (dim, points).
    Book: Alice 5.4. Paper: Scardapane et al., 2019.

    >>> KAF(dim=2)(torch.zeros(1, 2)).shape
    torch.Size([1, 2])
    """

    grid: Tensor

    def __init__(self, dim: int, points: int = 20, bound: float = 3.0):
        super().__init__()
        if points < 2 or not bound > 0:
            raise WonderlandError("KAF needs at least two points and a bound above 0.")
        grid = torch.linspace(-bound, bound, points)
        self.gamma = 1 / (6 * float(grid[1] - grid[0]) ** 2)
        self.register_buffer("grid", grid)
        kernel = torch.exp(-self.gamma * (grid[:, None] - grid).square()).double()
        start = torch.linalg.solve(kernel + 1e-4 * torch.eye(points).double(), nn.functional.elu(grid).double())
        self.weight = nn.Parameter(start.float()[None].repeat(dim, 1))

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight * torch.exp(-self.gamma * (x[..., None] - self.grid).square())).sum(-1)
