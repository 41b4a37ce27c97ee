"""A recommender that reads the history in order, with any mixer: attention is SASRec, a GRU is GRU4Rec."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, part
from wonderland.models.decoder import Decoder
from wonderland.models.recommend.base import Recommender, embedding, history_of


@part
class SequenceRecommender(Recommender):
    r"""A causal stack over the items of the history; its last place scores all items by their own vectors.

    .. math:: h = \text{stack}(E_{H_1}, \dots, E_{H_t}), \qquad s_i = h_t^\top E_i + b_i

    `mixer` is any spec of `wonderland.nn`. Papers: Hidasi et al., 2016; Kang and McAuley, 2018.

    >>> SequenceRecommender(users=3, items=5, dim=16, depth=1)(torch.tensor([[1, 0, 0, 2, 3]])).shape
    torch.Size([1, 6])
    """

    takes_specs = True

    def __init__(self, users: int, items: int, *, dim: int = 64, depth: int = 2, mixer: Spec | None = None, dropout: float = 0.2,
                 goal: str = "ranking"):  # fmt: skip
        super().__init__(users, items, goal)
        self.bias = embedding(items, 1, 0.0)
        chosen: dict[str, Any] = {} if mixer is None else {"mixer": mixer}
        self.body = Decoder(vocab=items + 2, dim=dim, depth=depth, tie=True, **chosen)
        self.dropout = nn.Dropout(dropout)

    def score(self, x: Tensor, items: Tensor) -> Tensor:
        history, real = history_of(x)
        count = real.sum(1)
        # Real items first, newest last, behind a sign of the beginning: mixers see no padding before them.
        place = torch.arange(history.shape[1], device=x.device)
        order = (place[None] + (history.shape[1] - count)[:, None]).clamp_max(max(0, history.shape[1] - 1))
        tokens = torch.where(place[None] < count[:, None], history.gather(1, order), 0)
        tokens = torch.cat([torch.full_like(tokens[:, :1], self.items + 1), tokens], 1)
        mask = torch.arange(tokens.shape[1], device=x.device)[None] <= count[:, None]
        hidden = self.body.features(tokens, mask)[torch.arange(x.shape[0], device=x.device), count]
        hidden = self.dropout(hidden)
        w, bias = self.body.embedding.weight[items], self.bias(items)[..., 0]
        return (hidden @ w.T if items.dim() == 1 else (w * hidden[:, None]).sum(-1)) + bias

    def item_vectors(self) -> Tensor:
        return self.body.embedding.weight.detach()[: self.items + 1]
