"""Disentangled attention: contents and distances have vectors of their own, and scores compare each with the other."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.mixers.attend import attend
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.positions.relative_table import RelativeTable
from wonderland.ops.softmax import masked_softmax

TERMS = ("c2p", "p2c")


@part
class DisentangledAttention(Attention):
    r"""Self-attention whose scores add a product of each query with its distance, and of each key with it.

    .. math::
        s_{ij} = \frac{q_i^\top k_j + q_i^\top W_k^p r_{\delta(i - j)} + k_j^\top W_q^p r_{\delta(i - j)}}{\sqrt{3 k}}

    `terms` names the products with a distance: "c2p" (content to position, the second of the sum) and "p2c" (the third);
    the scale counts those that there are. `position` is the spec of a `RelativeTable`, which has the vectors r; without one
    the sum has its first product alone. `nn.Stack(position=...)` shares one table among its blocks. With `shared_keys` the
    matrices of distances are those of contents, W_q and W_k.

    Not causal, so it does not stream. Shapes: x (b, t, dim) -> (b, t, dim). Cost: t^2 heads (key_dim + value_dim)
    multiply-adds, and 2 t heads key_dim for each distance that occurs. Paper: He et al., 2021 (DeBERTa).

    >>> mixer = DisentangledAttention(16, heads=2, position=RelativeTable.spec(farthest=8))
    >>> mixer(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    position_kinds = ("table",)

    def __init__(
        self,
        dim: int,
        *,
        heads: int | None = None,
        causal: bool = False,
        position: Spec | None = None,
        terms: list[str] | tuple[str, ...] = TERMS,
        shared_keys: bool = True,
        dropout: float | int = 0.0,
        bias: bool = True,
    ):
        if causal:
            raise WonderlandError(
                "DisentangledAttention sees both sides of a token: it cannot be built with causal=True."
            )
        if len(set(terms)) != len(terms) or not set(terms) <= set(TERMS):
            raise WonderlandError(
                f"The terms of DisentangledAttention are c2p and p2c, each at most once, not {terms!r}."
            )
        super().__init__(dim, heads=heads, causal=False, dropout=dropout, bias=bias)
        self.position_width = dim
        self.register_module("position", self.built_position(position))
        self.terms = tuple(term for term in TERMS if term in terms)
        self.scale = 1 / math.sqrt(self.key_dim * (1 + len(self.terms)))
        own = () if shared_keys else self.terms
        self.position_key = nn.Linear(dim, dim) if "c2p" in own else None
        self.position_query = nn.Linear(dim, dim) if "p2c" in own else None

    def _whole(self, fused: Tensor, mask: Tensor | None) -> Tensor:
        q, k, v = self._parts(fused)
        bias = self._distance_scores(q, k)
        if mask is not None:
            # A row without a real token sees its padding: its output is not used, and must not be NaN.
            allowed = (mask | ~mask[:, :1])[:, None, None]
            bias = allowed if bias is None else bias.masked_fill(~allowed, -math.inf)
        heads = [self._split(part, self.heads, self.key_dim) for part in (q, k, v)]
        dropout = self.dropout if self.training else 0.0
        return self.out(attend(heads[0], heads[1], heads[2], bias, self.scale, dropout=dropout))

    def _distance_scores(self, q: Tensor, k: Tensor) -> Tensor | None:
        """What distances add to the scores, scaled: (b, heads, t, t); None without a table."""
        table = self.position
        if not isinstance(table, RelativeTable) or not self.terms:
            return None
        places = torch.arange(q.shape[1], device=q.device).unsqueeze(0)
        first, last = table.rows(q.shape[1])
        vectors = table.vectors()[first:last].to(q.dtype)
        index = (table.index(places, places) - first).expand(q.shape[0], self.heads, -1, -1)
        total = None
        for term in self.terms:
            content, key_side = (q, True) if term == "c2p" else (k, False)
            products = self._split(content, self.heads, self.key_dim) @ self._position_vectors(vectors, key_side)
            # A key's products stand in its row, and belong into its column.
            scores = products.gather(3, index) if key_side else products.gather(3, index.mT).mT
            total = scores if total is None else total + scores
        assert total is not None
        return total * self.scale

    def _position_vectors(self, vectors: Tensor, key_side: bool) -> Tensor:
        """Vectors of distances as keys or as queries of each head: (n, dim) -> (heads, key_dim, n)."""
        own = self.position_key if key_side else self.position_query
        if own is None:
            rows = (
                slice(self._query_width, self._query_width + self._key_width) if key_side else slice(self._query_width)
            )
            bias = self.project.bias
            projected = F.linear(vectors, self.project.weight[rows], None if bias is None else bias[rows])
        else:
            projected = own(vectors)
        return projected.unflatten(1, (self.heads, self.key_dim)).permute(1, 2, 0)

    def _maps(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        q, k, v = self._parts(self._project(x, None))
        scores, distances = self._scores(q, k), self._distance_scores(q, k)
        scores = scores if distances is None else scores + distances
        allowed = torch.ones((1, 1, 1, 1), dtype=torch.bool, device=x.device).expand_as(scores)
        if mask is not None:
            allowed = allowed & mask[:, None, None] & mask[:, None, :, None]
        return masked_softmax(scores, allowed), v
