"""Matrix factorisation: a user and an item are vectors, and how well they go together is a product."""

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.recommend.base import Recommender, embedding, history_of, mean_of


@part
class MatrixFactorisation(Recommender):
    r"""Biases and a product of vectors; with `history`, the user's vector is joined by those of the items chosen before.

    .. math:: s_{ui} = b + b_u + b_i + \Big(p_u + |H|^{-1/2} \sum_{j \in H} y_j\Big)^\top q_i

    Book: D2L 21.3. Papers: Koren et al., 2009; Koren, 2008 (SVD++).

    >>> MatrixFactorisation(users=3, items=5)(torch.tensor([[1, 0, 0, 2]])).shape
    torch.Size([1, 6])
    """

    def __init__(
        self,
        users: int,
        items: int,
        *,
        dim: int = 64,
        history: bool = True,
        dropout: float = 0.0,
        goal: str = "ranking",
    ):
        super().__init__(users, items, goal)
        self.user, self.item = embedding(users, dim), embedding(items, dim)
        self.user_bias, self.item_bias = embedding(users, 1, 0.0), embedding(items, 1, 0.0)
        self.past = embedding(items, dim) if history else None
        self.bias = nn.Parameter(torch.zeros(()))
        self.dropout = nn.Dropout(dropout)

    def score(self, x: Tensor, items: Tensor) -> Tensor:
        vector = self.user(x[:, 0])
        if self.past is not None:
            history, real = history_of(x)
            vector = vector + mean_of(self.past(history), real)
        vector = self.dropout(vector)
        q, bias = self.item(items), self.item_bias(items)[..., 0]
        product = vector @ q.T if items.dim() == 1 else (q * vector[:, None]).sum(-1)
        return self.bias + self.user_bias(x[:, 0]) + bias + product
