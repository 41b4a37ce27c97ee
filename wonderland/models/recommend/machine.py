"""Factorisation machines: every two features interact through their vectors."""

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.recommend.base import Recommender, embedding, history_of, mean_of


@part
class FactorisationMachine(Recommender):
    r"""Weights of single features and products of their vectors, for user, item and history.

    .. math:: s = w_0 + \sum_i w_i x_i + \sum_{i<j} v_i^\top v_j x_i x_j, \qquad
        \sum_{i<j} v_i^\top v_j = \tfrac12 \Big(\big\lVert \sum_i v_i \big\rVert^2 - \sum_i \lVert v_i \rVert^2\Big)

    Book: D2L 21.9. Paper: Rendle, 2010.

    >>> FactorisationMachine(users=3, items=5)(torch.tensor([[1, 0, 2]])).shape
    torch.Size([1, 6])
    """

    def __init__(self, users: int, items: int, *, dim: int = 32, goal: str = "ranking"):
        super().__init__(users, items, goal)
        self.user, self.item, self.past = embedding(users, dim), embedding(items, dim), embedding(items, dim)
        self.user_weight, self.item_weight = embedding(users, 1, 0.0), embedding(items, 1, 0.0)
        self.bias = nn.Parameter(torch.zeros(()))

    def fields(self, x: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors of user and history (b, d), and of items (k, d) or (b, 1, d)."""
        history, real = history_of(x)
        return self.user(x[:, 0]), mean_of(self.past(history), real), self.item(items)

    def score(self, x: Tensor, items: Tensor) -> Tensor:
        user, past, item = self.fields(x, items)
        both = user + past
        pairs = both @ item.T if items.dim() == 1 else (item * both[:, None]).sum(-1)
        weights = self.user_weight(x[:, 0]) + self.item_weight(items)[..., 0]
        return self.bias + weights + pairs + (user * past).sum(-1, keepdim=True)


@part
class DeepFM(FactorisationMachine):
    r"""A factorisation machine and a network over the same vectors, added.

    .. math:: s = s_\text{FM} + \text{MLP}([v_u; v_i; v_H])

    Book: D2L 21.10. Paper: Guo et al., 2017.

    >>> DeepFM(users=3, items=5)(torch.tensor([[1, 0, 2]])).shape
    torch.Size([1, 6])
    """

    def __init__(self, users: int, items: int, *, dim: int = 32, hidden: int = 32, goal: str = "ranking"):
        super().__init__(users, items, dim=dim, goal=goal)
        self.first, self.of_item = nn.Linear(2 * dim, hidden), nn.Linear(dim, hidden, bias=False)
        self.deep = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def score(self, x: Tensor, items: Tensor) -> Tensor:
        user, past, item = self.fields(x, items)
        hidden = self.first(torch.cat([user, past], -1))[:, None] + self.of_item(item)
        return super().score(x, items) + self.deep(hidden)[..., 0]
