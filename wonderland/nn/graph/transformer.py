"""Transformers on graphs: attention along edges, and the GPS block with attention among all nodes of a graph beside it."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.ops.row_softmax import row_softmax
from wonderland.ops.segment import segment_sum
from wonderland.ops.sparse_product import sparse_product


@part
class EdgeAttention(GraphLayer):
    r"""Scaled dot-product attention along edges (TransformerConv).

    .. math::
        h_i = W_s x_i + \sum_{j \in N(i)} \operatorname{softmax}_j\Big(\frac{q_i^\top (k_j + u_{ij})}{\sqrt{out}}\Big) (v_j + u_{ij}),
        \qquad u_{ij} = U e_{ij}

    Shapes: x (n, d), edge (m, edge_dim) -> (n, heads * out), or (n, out) without `join`. Paper: Shi et al., 2021.

    >>> EdgeAttention(3, 2, heads=2)(torch.randn(2, 3), Graph([(0, 1)])).shape
    torch.Size([2, 4])
    """

    hops = 1

    def __init__(
        self,
        dim: int,
        out: int,
        *,
        heads: int = 1,
        join: bool = True,
        dropout: float = 0.0,
        edge_dim: int | None = None,
        own: bool = True,
    ):
        super().__init__()
        self.out, self.heads, self.join, self.dropout = out, heads, join, dropout
        self.query, self.key, self.value = (nn.Linear(dim, heads * out) for _ in range(3))
        self.edge = None if edge_dim is None else nn.Linear(edge_dim, heads * out, bias=False)
        self.own = nn.Linear(dim, heads * out if join else out) if own else None

    def forward(self, x: Tensor, graph: Graph, edge: Tensor | None = None) -> Tensor:
        check(self, x, graph, edge)
        q, k, v = (each(x).unflatten(1, (self.heads, self.out)) for each in (self.query, self.key, self.value))
        pattern, along = graph.pattern, None
        keys = k[pattern.column]
        if edge is not None and self.edge is not None:
            along = graph.sorted_edges(self.edge(edge)).unflatten(1, (self.heads, self.out))
            keys = keys + along
        share = row_softmax(pattern, (q[pattern.row] * keys).sum(-1) / math.sqrt(self.out))
        share = F.dropout(share, self.dropout, self.training)
        h = sparse_product(pattern, share, v)
        if along is not None:
            h = h + segment_sum(along * share[..., None], pattern.row, graph.nodes)
        h = h.flatten(1) if self.join else h.mean(1)
        return h if self.own is None else h + self.own(x)


@part
class NodeAttention(GraphLayer):
    r"""Attention among all nodes of a graph, edges or not: each graph of a batch for itself.

    Shapes: x (n, d) -> (n, d); memory grows with the square of the largest graph. Nodes are told apart only by their features,
    so that structural encodings have to be added.

    >>> NodeAttention(4, heads=2)(torch.randn(2, 4), Graph([(0, 1)])).shape
    torch.Size([2, 4])
    """

    def __init__(self, dim: int, *, heads: int = 4, dropout: float = 0.0):
        super().__init__()
        if dim % heads:
            raise WonderlandError(f"NodeAttention of width {dim} cannot be cut into {heads} heads of equal width.")
        self.heads, self.dropout = heads, dropout
        self.project, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        padded, mask = padded_rows(x, graph)
        q, k, v = self.project(padded).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        drop = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None], dropout_p=drop)
        return self.out(y.transpose(1, 2).flatten(2)[mask])


def padded_rows(x: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
    """Nodes of each graph as rows of one length (graphs, longest, d), and which of them are nodes (graphs, longest)."""
    sizes = graph.sizes
    longest = int(sizes.max()) if len(sizes) else 0
    mask = torch.arange(longest, device=x.device) < sizes.to(x.device)[:, None]
    padded = x.new_zeros(*mask.shape, x.shape[1])
    return padded.masked_scatter(mask[..., None], x), mask


@part
class GPS(GraphLayer):
    r"""Message passing along edges and attention among all nodes, added, with an MLP after them.

    .. math::
        h = \mathrm{norm}(x + \mathrm{local}(x, G)) + \mathrm{norm}(x + \mathrm{attention}(x)), \qquad y = \mathrm{norm}(h + \mathrm{MLP}(h))

    `local` is any layer of graphs of width d -> d. Shapes: x (n, d) -> (n, d). Paper: Rampasek et al., 2022.

    >>> from wonderland.nn.graph.isomorphism import GIN
    >>> GPS(4, local=GIN(4, 4), heads=2)(torch.randn(2, 4), Graph.undirected([(0, 1)])).shape
    torch.Size([2, 4])
    """

    def __init__(self, dim: int, *, local: nn.Module | None = None, heads: int = 4, dropout: float = 0.0):
        super().__init__()
        self.local, self.attention = local, NodeAttention(dim, heads=heads)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
        self.dropout = dropout

    def forward(self, x: Tensor, graph: Graph, edge: Tensor | None = None) -> Tensor:
        def drop(h: Tensor) -> Tensor:
            return F.dropout(h, self.dropout, self.training)

        h = self.norms[1](x + drop(self.attention(x, graph)))
        if self.local is not None:
            along = self.local(x, graph) if edge is None else self.local(x, graph, edge)
            h = h + self.norms[0](x + drop(along))
        return self.norms[2](h + drop(self.mlp(h)))
