"""Implicit feedback by alternating least squares: what was not chosen counts a little, what was chosen a lot."""

import torch
from torch import Tensor


def implicit_als(
    users: Tensor,
    items: Tensor,
    *,
    dim: int = 32,
    weight: float = 10.0,
    ridge: float = 0.1,
    sweeps: int = 15,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    r"""Vectors of users and items that minimise a weighted squared error over all pairs.

    .. math:: \sum_{u,i} c_{ui} (p_{ui} - x_u^\top y_i)^2 + \lambda (\lVert X \rVert^2 + \lVert Y \rVert^2),
        \quad x_u = (Y^\top Y + Y^\top (C_u - I) Y + \lambda I)^{-1} Y^\top C_u p_u

    :math:`c_{ui} = 1 + \text{weight}` and :math:`p_{ui} = 1` where user u chose item i, else 1 and 0.

    Shapes: users (n,), items (n,) of codes -> (max user + 1, dim), (max item + 1, dim). Paper: Hu et al., 2008.

    >>> x, y = implicit_als(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 2]), dim=2)
    >>> bool((x @ y.T)[0, 1] > (x @ y.T)[0, 2])
    True
    """
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(int(users.max()) + 1, dim, generator=draw).double() * 0.1
    y = torch.randn(int(items.max()) + 1, dim, generator=draw).double() * 0.1
    for _ in range(sweeps):
        x = _solved(users, items, y, len(x), weight, ridge)
        y = _solved(items, users, x, len(y), weight, ridge)
    return x, y


def _solved(rows: Tensor, columns: Tensor, other: Tensor, count: int, weight: float, ridge: float) -> Tensor:
    """The best vectors of rows, given those of columns."""
    dim = other.shape[1]
    chosen = other[columns]
    system = torch.zeros(count, dim, dim, dtype=torch.float64)
    for piece in torch.arange(len(rows)).split(65_536):
        system.index_add_(0, rows[piece], weight * chosen[piece, :, None] * chosen[piece, None, :])
    system += other.T @ other + ridge * torch.eye(dim, dtype=torch.float64)
    right = torch.zeros(count, dim, dtype=torch.float64).index_add_(0, rows, (1 + weight) * chosen)
    return torch.linalg.solve(system, right[..., None])[..., 0]
