"""Knowledge graphs: vectors of entities and relations whose scores say which facts (head, relation, tail) are true."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked

SCORES = ("complex", "distmult", "transe", "rotate")


@part
class TripleModel(Checked, nn.Module):
    r"""A score for each fact of a knowledge graph.

    .. math::
        \text{distmult: } \sum_k h_k r_k t_k, \quad \text{complex: } \operatorname{Re} \sum_k h_k r_k \bar t_k, \quad
        \text{transe: } -\|h + r - t\|_2, \quad \text{rotate: } -\textstyle\sum_k |h_k e^{i r_k} - t_k|

    DistMult is symmetric in head and tail; the others are not. `dim` is the number of real numbers of an entity. `tails` and `heads`
    score every entity at once. Shapes: triples (b, 3) of (head, relation, tail) -> (b,); tails -> (b, entities).
    Papers: Yang et al., 2015; Trouillon et al., 2016; Bordes et al., 2013; Sun et al., 2019.

    >>> model = TripleModel(5, 2, dim=8)
    >>> triples = torch.tensor([[0, 1, 4]])
    >>> torch.allclose(model(triples), model.tails(triples)[:, 4], atol=1e-6)
    True
    """

    def __init__(self, entities: int, relations: int, *, dim: int = 64, score: str = "complex", dropout: float = 0.0):
        super().__init__()
        if score not in SCORES:
            raise WonderlandError(f"There is no score {score!r}. Known are {', '.join(SCORES)}.")
        paired = score in ("complex", "rotate")
        if paired and dim % 2:
            raise WonderlandError(
                f"TripleModel by {score} takes an even width, pairs of real and imaginary parts, not {dim}."
            )
        self.score, self.dropout = score, dropout
        self.entity = nn.Embedding(entities, dim)
        self.relation = nn.Embedding(relations, dim // 2 if score == "rotate" else dim)
        nn.init.normal_(self.entity.weight, std=dim**-0.5)
        nn.init.normal_(self.relation.weight, std=1.0 if score == "rotate" else dim**-0.5)

    def forward(self, triples: Tensor) -> Tensor:
        h, r, t = self.entity(triples[:, 0]), self.relation(triples[:, 1]), self.entity(triples[:, 2])
        return self._compared(self._moved(h, r), t)

    def tails(self, triples: Tensor) -> Tensor:
        """The score of every entity as the tail of each fact; the tails that are given are not looked at."""
        h, r = self.entity(triples[:, 0]), self.relation(triples[:, 1])
        moved = F.dropout(self._moved(h, r), self.dropout, self.training)
        return self._compared(moved[:, None], self.entity.weight[None])

    def heads(self, triples: Tensor) -> Tensor:
        """The score of every entity as the head of each fact."""
        r, t = self.relation(triples[:, 1]), self.entity(triples[:, 2])
        if self.score in ("complex", "rotate"):
            t = F.dropout(t, self.dropout, self.training)
            return self._compared(self._moved(self.entity.weight[None], r[:, None]), t[:, None])
        moved = self._moved(t, r) if self.score == "distmult" else t - r
        return self._compared(F.dropout(moved, self.dropout, self.training)[:, None], self.entity.weight[None])

    def _moved(self, h: Tensor, r: Tensor) -> Tensor:
        """The head after the relation, to be compared with tails."""
        if self.score == "distmult":
            return h * r
        if self.score == "transe":
            return h + r
        a, b = h.chunk(2, -1)
        c, d = (r.cos(), r.sin()) if self.score == "rotate" else r.chunk(2, -1)
        return torch.cat([a * c - b * d, a * d + b * c], -1)

    def _compared(self, moved: Tensor, t: Tensor) -> Tensor:
        if self.score in ("distmult", "complex"):
            return (moved @ t.mT).squeeze(1) if moved.dim() == 3 and moved.shape[1] == 1 else (moved * t).sum(-1)
        if self.score == "transe":
            return -(moved - t).norm(dim=-1)
        a, b = (moved - t).chunk(2, -1)
        return -(a.square() + b.square() + 1e-12).sqrt().sum(-1)


def filtered_ranks(scores: Tensor, right: Tensor, known: Tensor) -> Tensor:
    """The rank of the right entity among those that are not known to be right as well (b,): 1 is best; ties count half.

    Shapes: scores (b, entities), right (b,), known (b, entities) True for every true answer.

    >>> filtered_ranks(torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([1]), torch.tensor([[True, True, False]]))
    tensor([1.])
    """
    own = scores.gather(1, right[:, None])
    others = ~known
    return 1 + ((scores > own) & others).sum(1) + 0.5 * ((scores == own) & others).sum(1)
