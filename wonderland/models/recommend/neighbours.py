"""Item neighbours: items that the same users chose."""

import torch
from torch import Tensor


def item_neighbours(
    users: Tensor, items: Tensor, count: int, *, most: int = 50, shrink: float = 10.0
) -> tuple[Tensor, Tensor]:
    r"""The most similar items of each, by the cosine of who chose them, shrunk where few did.

    .. math:: \text{sim}(i, j) = \frac{|U_i \cap U_j|}{\sqrt{|U_i| |U_j|} + \lambda}

    Shapes: users (n,), items (n,) of codes from 1 to count -> indices (count + 1, m) and similarities (count + 1, m).

    >>> near, how = item_neighbours(torch.tensor([1, 1, 2, 2]), torch.tensor([1, 2, 1, 2]), 2, shrink=0.0)
    >>> near[1, 0].item(), how[1, 0].item()
    (2, 1.0)
    """
    most = min(most, count)
    shape = (count + 1, int(users.max()) + 1)
    pairs = torch.stack([items, users]).unique(dim=1)
    matrix = torch.sparse_coo_tensor(pairs, torch.ones(pairs.shape[1]), shape, check_invariants=True).coalesce()
    sizes = torch.bincount(matrix.indices()[0], minlength=count + 1).float()
    near, how = torch.zeros(count + 1, most, dtype=torch.long), torch.zeros(count + 1, most)
    for first in range(0, count + 1, 1024):
        rows = torch.arange(first, min(count + 1, first + 1024))
        dense = torch.zeros(len(rows), matrix.shape[1])
        inside = (matrix.indices()[0] >= first) & (matrix.indices()[0] < first + len(rows))
        index = matrix.indices()[:, inside]
        dense[index[0] - first, index[1]] = 1.0
        both = torch.sparse.mm(matrix, dense.T).T
        similar = both / ((sizes[rows][:, None] * sizes[None]).sqrt() + shrink).clamp_min(1e-12)
        similar[torch.arange(len(rows)), rows] = 0
        how[rows], near[rows] = similar.topk(most, -1)
    return near, how
