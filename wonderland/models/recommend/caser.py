"""Caser: the last items as a picture, read by convolutions along time and along features."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.recommend.base import Recommender, embedding, history_of


@part
class Caser(Recommender):
    r"""Horizontal filters find patterns of a few items in a row, vertical ones weigh the places.

    .. math:: E \in \mathbb{R}^{L \times d}, \quad h = \max_t \text{relu}(F_k * E), \quad v = G^\top E, \quad
        s = [W [h; v]; p_u]^\top q_i + b_i

    Book: D2L 21.7. Paper: Tang and Wang, 2018.

    >>> Caser(users=3, items=5)(torch.tensor([[1, 0, 0, 0, 0, 2, 3]])).shape
    torch.Size([1, 6])
    """

    def __init__(self, users: int, items: int, *, dim: int = 32, last: int = 5, filters: int = 8, vertical: int = 4, dropout: float = 0.2,
                 goal: str = "ranking"):  # fmt: skip
        super().__init__(users, items, goal)
        if last < 1:
            raise WonderlandError("Caser reads at least one item.")
        self.last = last
        self.user, self.past, self.item = embedding(users, dim), embedding(items, dim), embedding(items, 2 * dim)
        self.bias = embedding(items, 1, 0.0)
        self.rows = nn.ModuleList(nn.Conv2d(1, filters, (size, dim)) for size in range(1, last + 1))
        self.columns = nn.Conv2d(1, vertical, (last, 1))
        self.joined = nn.Linear(filters * last + vertical * dim, dim)
        self.dropout = nn.Dropout(dropout)

    def score(self, x: Tensor, items: Tensor) -> Tensor:
        history, _ = history_of(x)
        history = nn.functional.pad(history, (self.last, 0))[:, -self.last :]
        picture = (self.past(history) * (history > 0)[..., None])[:, None]
        features = [row(picture)[..., 0].relu().amax(-1) for row in self.rows] + [self.columns(picture).flatten(1)]
        hidden = self.joined(self.dropout(torch.cat(features, -1))).relu()
        vector = torch.cat([hidden, self.user(x[:, 0])], -1)
        w, bias = self.item(items), self.bias(items)[..., 0]
        return (vector @ w.T if items.dim() == 1 else (w * vector[:, None]).sum(-1)) + bias
