"""AutoRec: the items of a user through a bottleneck, and back to all items."""

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.recommend.base import Recommender, embedding, history_of, mean_of


@part
class AutoRec(Recommender):
    r"""An autoencoder of what a user chose.

    .. math:: s_u = W \, \sigma(V^\top h_u + c) + b

    :math:`h_u` marks the items of the history. Book: D2L 21.4. Paper: Sedhain et al., 2015.

    >>> AutoRec(users=3, items=5)(torch.tensor([[1, 0, 2, 3]])).shape
    torch.Size([1, 6])
    """

    def __init__(self, users: int, items: int, *, hidden: int = 64, dropout: float = 0.1, goal: str = "ranking"):
        super().__init__(users, items, goal)
        self.past, self.item = embedding(items, hidden), embedding(items, hidden)
        self.shift, self.bias = nn.Parameter(torch.zeros(hidden)), embedding(items, 1, 0.0)
        self.dropout = nn.Dropout(dropout)

    def score(self, x: Tensor, items: Tensor) -> Tensor:
        history, real = history_of(x)
        code = self.dropout(torch.sigmoid(mean_of(self.past(history), real) + self.shift))
        w, bias = self.item(items), self.bias(items)[..., 0]
        return (code @ w.T if items.dim() == 1 else (w * code[:, None]).sum(-1)) + bias
