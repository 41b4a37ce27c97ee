"""Relative table: a trained vector for each distance, compared with queries and keys as DeBERTa does."""

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.channel.mlp import chance
from wonderland.nn.positions.position import Position


@part
class RelativeTable(Position):
    r"""A trained vector for each distance from -span to span - 1, which all layers share; for `nn.DisentangledAttention`.

    .. math::
        \delta(n) = \mathrm{clip}(\mathrm{bucket}(n) + s,\, 0,\, 2s - 1), \qquad
        \mathrm{bucket}(n) = \begin{cases} n & |n| \le m \\
        \mathrm{sign}(n) \left( m + \left\lceil \frac{\log(|n| / m)}{\log((\mathrm{farthest} - 1) / m)} (m - 1) \right\rceil
        \right) & |n| > m \end{cases}

    n is the place of the query less that of the key. Without `buckets` every distance below `farthest` has a vector, and
    s is `farthest`; with them s is `buckets`, and distances above m = buckets / 2 share vectors, the more the further they
    are. `norm` is the spec of a norm of the vectors, `dropout` drops their features in training.

    Shapes: positions (b, q), (b, k) -> index (b, q, k); `vectors()` (2 s, dim). Paper: He et al., 2021.

    >>> RelativeTable(4, farthest=8).index(torch.arange(3)[None], torch.arange(3)[None])[0].tolist()
    [[8, 7, 6], [9, 8, 7], [10, 9, 8]]
    """

    takes_specs = True
    kind = "table"
    relative = True

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        *,
        farthest: int = 512,
        buckets: int = 0,
        norm: Spec | None = None,
        dropout: float | int = 0.0,
    ):
        super().__init__()
        if min(dim, farthest) < 1 or (buckets and not 4 <= buckets < 2 * farthest - 2):
            raise WonderlandError(
                f"RelativeTable cannot be built with dim={dim}, farthest={farthest}, buckets={buckets}: dim and farthest are "
                "whole numbers from 1, and buckets is 0 or a number from 4 whose half is below farthest - 1."
            )
        self.farthest, self.buckets, self.dropout = farthest, buckets, chance(dropout, "RelativeTable")
        self.span = buckets or farthest
        self.weight = nn.Parameter(torch.empty(2 * self.span, dim))
        nn.init.normal_(self.weight, std=0.02)
        self.norm = None if norm is None else norm.build(dim=dim)

    def vectors(self) -> Tensor:
        """The vector of every distance (2 span, dim), normed."""
        vectors = self.weight if self.norm is None else self.norm.apply_to(self.weight)
        return F.dropout(vectors, self.dropout) if self.training and self.dropout else vectors

    def index(self, query_positions: Int[Tensor, "#b q"], key_positions: Int[Tensor, "#b k"]) -> Int[Tensor, "_ q k"]:
        """The row of the table for each pair of a query and a key."""
        offset = query_positions.unsqueeze(2) - key_positions.unsqueeze(1)
        return (self.bucket(offset) + self.span).clamp(0, 2 * self.span - 1)

    def rows(self, t: int) -> tuple[int, int]:
        """The first row that a sequence of t tokens may read, and the one after the last."""
        if self.buckets and t > self.buckets // 2:
            return 0, 2 * self.span
        return max(0, self.span - t + 1), min(2 * self.span, self.span + t)

    def bucket(self, offset: Tensor) -> Tensor:
        """The bucket of an offset, the place of the query less that of the key."""
        if not self.buckets:
            return offset
        half = self.buckets // 2
        distance = offset.abs()
        # In single precision whatever the model's: published tables were trained with the buckets that this gives.
        far = torch.log(distance.clamp_min(half) / half)
        far = torch.ceil(far / torch.log(torch.tensor((self.farthest - 1) / half)) * (half - 1)).long() + half
        return torch.where(distance <= half, offset, far * offset.sign())
