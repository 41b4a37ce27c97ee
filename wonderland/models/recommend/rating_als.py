"""Ratings by alternating least squares: biases and vectors of users and items, each solved while the other is held."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class RatingFactors:
    """The mean, biases of users (u,) and items (i,), and their vectors (u, d), (i, d)."""

    mean: float
    user_bias: Tensor
    item_bias: Tensor
    user: Tensor
    item: Tensor

    def predict(self, users: Tensor, items: Tensor) -> Tensor:
        """Ratings of pairs: (n,), (n,) -> (n,)."""
        product = (self.user[users] * self.item[items]).sum(-1)
        return self.mean + self.user_bias[users] + self.item_bias[items] + product


def rating_als(
    users: Tensor, items: Tensor, ratings: Tensor, *, sizes: tuple[int, int] | None = None, dim: int = 20, ridge: float = 0.15,
    shrink: float = 5.0, sweeps: int = 20, seed: int = 0,
) -> RatingFactors:  # fmt: skip
    r"""Matrix factorisation with biases, without a learning rate.

    .. math:: \sum_{(u,i)} (r_{ui} - b - b_u - b_i - p_u^\top q_i)^2 + \lambda \Big(\sum_u n_u \lVert p_u \rVert^2 + \sum_i n_i \lVert q_i \rVert^2\Big)

    A vector is held back in proportion to its ratings (`ridge`), a bias as by `shrink` ratings of 0. `sizes` are the numbers of
    users and items, where some have no rating here. Shapes: (n,) each. Paper: Zhou et al., 2008.

    >>> u, i = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    >>> factors = rating_als(u, i, torch.tensor([5.0, 1.0, 5.0, 1.0]), dim=1, shrink=0.0)
    >>> [round(value, 1) for value in factors.predict(u, i).tolist()]
    [5.0, 1.0, 5.0, 1.0]
    """
    r = ratings.double()
    many = (int(users.max()) + 1, int(items.max()) + 1) if sizes is None else sizes
    counts = [torch.bincount(rows, minlength=size).double() for rows, size in ((users, many[0]), (items, many[1]))]
    draw = torch.Generator().manual_seed(seed)
    p, q = (torch.randn(size, dim, generator=draw).double() * 0.1 for size in many)
    mean, by_user, by_item = float(r.mean()), torch.zeros(many[0]).double(), torch.zeros(many[1]).double()
    product = torch.zeros_like(r)
    for _ in range(sweeps):
        for _ in range(2):
            by_item = _sums(items, r - mean - by_user[users] - product, many[1]) / (counts[1] + shrink).clamp_min(1)
            by_user = _sums(users, r - mean - by_item[items] - product, many[0]) / (counts[0] + shrink).clamp_min(1)
        rest = r - mean - by_user[users] - by_item[items]
        p = _solved(users, q[items], rest, counts[0], ridge)
        q = _solved(items, p[users], rest, counts[1], ridge)
        product = (p[users] * q[items]).sum(-1)
    return RatingFactors(mean, by_user, by_item, p, q)


def _sums(rows: Tensor, values: Tensor, size: int) -> Tensor:
    return torch.zeros(size, *values.shape[1:], dtype=torch.float64).index_add_(0, rows, values)


def _solved(rows: Tensor, vectors: Tensor, goal: Tensor, counts: Tensor, ridge: float) -> Tensor:
    """The best vector of each row, by its own ridge regression."""
    dim = vectors.shape[1]
    system = torch.zeros(len(counts), dim, dim, dtype=torch.float64)
    for piece in torch.arange(len(rows)).split(65_536):
        system.index_add_(0, rows[piece], vectors[piece, :, None] * vectors[piece, None, :])
    system += torch.diag_embed((ridge * counts.clamp_min(1))[:, None].expand(-1, dim))
    return torch.linalg.solve(system, _sums(rows, vectors * goal[:, None], len(counts))[..., None])[..., 0]
