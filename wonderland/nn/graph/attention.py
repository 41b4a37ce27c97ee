"""Graph attention: neighbours weigh what scores of pairs say. GAT and GATv2."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check, glorot, project
from wonderland.ops.over_time import is_exporting
from wonderland.ops.row_softmax import additive_attention, row_softmax
from wonderland.ops.segment import segment_mean
from wonderland.ops.sparse_product import sparse_product


class _Attention(GraphLayer):
    """What the two share: heads, loops, features of edges, and how heads are joined."""

    hops = 1

    def __init__(self, out: int, heads: int, join: bool, loops: bool, dropout: float, edge_dim: int | None):
        super().__init__()
        self.out, self.heads, self.join, self.loops, self.dropout = out, heads, join, loops, dropout
        self.edge = None if edge_dim is None else nn.Linear(edge_dim, heads * out, bias=False)
        self.bias = nn.Parameter(torch.zeros(heads * out if join else out))

    def looped(self, graph: Graph, edge: Tensor | None) -> tuple[Graph, Tensor | None]:
        """With a loop at every node, whose features are the mean of those of the edges that end there."""
        if not self.loops:
            return graph, edge
        if edge is None:
            return graph.with_loops(), None
        if not is_exporting():  # exported programs are given graphs without loops
            graph, edge = graph.without_loops(), edge[graph.edges[0] != graph.edges[1]]
        return graph.with_loops(), torch.cat([edge, segment_mean(edge, graph.edges[1], graph.nodes)])

    def joined(self, h: Tensor) -> Tensor:
        """Heads (n, heads, out) side by side, or their mean, and the bias."""
        return (h.flatten(1) if self.join else h.mean(1)) + self.bias


@part
class GAT(_Attention):
    r"""Graph attention with a score that is a sum over the two ends.

    .. math::
        h_i = \sum_{j \in N(i)} \operatorname{softmax}_j\big(\mathrm{LeakyReLU}(a^\top [W x_i \,\|\, W x_j])\big)\, W x_j

    One softmax for each head; heads stand side by side, or are averaged without `join`. The ranking of neighbours is the same for
    every node (GATv2 lifts that). Shapes: x (n, d), edge (m, edge_dim) -> (n, heads * out). Shares alone are kept for the
    backward pass, m x heads numbers. Book: Alice 12.3. Paper: Velickovic et al., 2018.

    >>> GAT(3, 2, heads=4)(torch.randn(2, 3), Graph([(0, 1)])).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        dim: int,
        out: int,
        *,
        heads: int = 1,
        join: bool = True,
        loops: bool = True,
        dropout: float = 0.0,
        slope: float = 0.2,
        edge_dim: int | None = None,
    ):
        super().__init__(out, heads, join, loops, dropout, edge_dim)
        self.slope = slope
        self.project = nn.Linear(dim, heads * out, bias=False)
        self.source, self.target = (nn.Parameter(torch.empty(1, heads, out)) for _ in range(2))
        self.along = None if edge_dim is None else nn.Parameter(torch.empty(1, heads, out))
        glorot(self.project.weight, self.source, self.target)
        if self.edge is not None and self.along is not None:
            glorot(self.edge.weight, self.along)

    def shares(self, x: Any, graph: Graph, edge: Tensor | None = None) -> tuple[Graph, Tensor, Tensor]:
        """The graph with loops, the attention of each of its entries (m, heads), and the projected nodes."""
        check(self, x, graph, edge)
        graph, edge = self.looped(graph, edge)
        h = project(self.project, x).unflatten(1, (self.heads, self.out))
        source, target = (h * self.source).sum(-1), (h * self.target).sum(-1)
        if edge is None or self.edge is None or self.along is None:
            return graph, additive_attention(graph.pattern, source, target, self.slope), h
        along = (self.edge(edge).unflatten(1, (self.heads, self.out)) * self.along).sum(-1)
        pattern = graph.pattern
        score = source[pattern.column] + target[pattern.row] + graph.sorted_edges(along)
        return graph, row_softmax(pattern, F.leaky_relu(score, self.slope)), h

    def forward(self, x: Any, graph: Graph, edge: Tensor | None = None) -> Tensor:
        graph, share, h = self.shares(x, graph, edge)
        return self.joined(sparse_product(graph.pattern, F.dropout(share, self.dropout, self.training), h))


@part
class GATv2(_Attention):
    r"""Graph attention whose ranking of neighbours depends on who asks.

    .. math::
        h_i = \sum_{j \in N(i)} \operatorname{softmax}_j\big(a^\top \mathrm{LeakyReLU}(V x_i + W x_j + U e_{ij})\big)\, W x_j

    Shapes: x (n, d), edge (m, edge_dim) -> (n, heads * out). Scores need m x heads * out numbers. Book: Alice 12.3. Paper: Brody
    et al., 2022.

    >>> GATv2(3, 2, heads=4)(torch.randn(2, 3), Graph([(0, 1)])).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        dim: int,
        out: int,
        *,
        heads: int = 1,
        join: bool = True,
        loops: bool = True,
        dropout: float = 0.0,
        slope: float = 0.2,
        edge_dim: int | None = None,
    ):
        super().__init__(out, heads, join, loops, dropout, edge_dim)
        self.slope = slope
        self.source, self.target = (nn.Linear(dim, heads * out) for _ in range(2))
        self.score = nn.Parameter(torch.empty(1, heads, out))
        glorot(self.source.weight, self.target.weight, self.score)
        if self.edge is not None:
            glorot(self.edge.weight)

    def shares(self, x: Any, graph: Graph, edge: Tensor | None = None) -> tuple[Graph, Tensor, Tensor]:
        """The graph with loops, the attention of each of its entries (m, heads), and the projected sources."""
        check(self, x, graph, edge)
        graph, edge = self.looped(graph, edge)
        source, target = (
            project(linear, x).unflatten(1, (self.heads, self.out)) for linear in (self.source, self.target)
        )
        pattern = graph.pattern
        pair = source[pattern.column] + target[pattern.row]
        if edge is not None and self.edge is not None:
            pair = pair + graph.sorted_edges(self.edge(edge)).unflatten(1, (self.heads, self.out))
        score = (F.leaky_relu(pair, self.slope) * self.score).sum(-1)
        return graph, row_softmax(pattern, score), source

    def forward(self, x: Any, graph: Graph, edge: Tensor | None = None) -> Tensor:
        graph, share, source = self.shares(x, graph, edge)
        return self.joined(sparse_product(graph.pattern, F.dropout(share, self.dropout, self.training), source))
