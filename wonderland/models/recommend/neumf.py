"""Neural matrix factorisation: a product of vectors beside a network of other vectors."""

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.recommend.base import Recommender, embedding


@part
class NeuMF(Recommender):
    r"""A weighted product of vectors, and a network over the concatenation of others.

    .. math:: s_{ui} = w^\top [p_u \odot q_i;\ \text{MLP}(u_u, v_i)]

    Book: D2L 21.6. Paper: He et al., 2017.

    >>> NeuMF(users=3, items=5)(torch.tensor([[1, 0]])).shape
    torch.Size([1, 6])
    """

    def __init__(self, users: int, items: int, *, dim: int = 16, hidden: int = 32, goal: str = "ranking"):
        super().__init__(users, items, goal)
        self.user, self.item = embedding(users, dim), embedding(items, dim)
        self.other_user, self.other = embedding(users, dim), embedding(items, dim)
        self.from_user, self.from_item = nn.Linear(dim, hidden), nn.Linear(dim, hidden, bias=False)
        self.layers = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden // 2), nn.ReLU())
        self.out = nn.Linear(dim + hidden // 2, 1)

    def score(self, x: Tensor, items: Tensor) -> Tensor:
        items = items[None].expand(x.shape[0], -1) if items.dim() == 1 else items
        user = x[:, 0]
        product = self.user(user)[:, None] * self.item(items)
        deep = self.layers(self.from_user(self.other_user(user))[:, None] + self.from_item(self.other.weight)[items])
        return self.out(torch.cat([product, deep], -1))[..., 0]
