"""Graph convolution: each node becomes the weighted sum of its neighbours, projected."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.laws import determinism, gradients, graph_locality
from wonderland.nn.graph.layer import GraphLayer, check, glorot, project
from wonderland.ops.sparse_product import sparse_product


@part
class GraphConvolution(GraphLayer):
    r"""Graph convolution with a normalised adjacency matrix.

    .. math::
        H = \hat A X W + b, \qquad \hat A = D^{-1/2} (A + I) D^{-1/2}

    `norm` is "symmetric", "row", "column" or "none"; without `loops` it is A in place of A + I. With `bias_inside` the bias is
    diffused too, :math:`\hat A (X W + b)`, as Alice writes it. The product is taken on the narrower side.

    Shapes: x (n, d) -> (n, out). Book: Alice 12.2. Paper: Kipf and Welling, 2017.

    >>> layer = GraphConvolution(3, 2)
    >>> layer(torch.randn(4, 3), Graph.undirected([(0, 1), (2, 3)])).shape
    torch.Size([4, 2])
    """

    hops = 1

    def __init__(
        self,
        dim: int,
        out: int,
        *,
        norm: str = "symmetric",
        loops: bool = True,
        bias: bool = True,
        bias_inside: bool = False,
    ):
        super().__init__()
        self.norm, self.loops, self.bias_inside = norm, loops, bias_inside
        self.project = nn.Linear(dim, out, bias=bias_inside and bias)
        self.bias = nn.Parameter(torch.zeros(out)) if bias and not bias_inside else None
        glorot(self.project.weight)
        if self.project.bias is not None:
            nn.init.zeros_(self.project.bias)

    def forward(self, x: Any, graph: Graph) -> Tensor:
        check(self, x, graph)
        pattern, value = graph.normalised(self.norm, loops=self.loops, dtype=x.dtype)
        first, out = self.project.in_features, self.project.out_features
        if first < out and isinstance(x, Tensor) and not self.bias_inside:
            h = self.project(sparse_product(pattern, value, x))
        else:
            h = sparse_product(pattern, value, project(self.project, x))
        return h if self.bias is None else h + self.bias


@part
class NeighbourConvolution(GraphLayer):
    r"""A projection of each node beside the sum over its neighbours (GraphConv).

    .. math::
        h_i = V x_i + \textstyle\sum_{j \in N(i)} A_{ij} W x_j

    Shapes: x (n, d) -> (n, out). Book: Alice 12.3. Paper: Morris et al., 2019.

    >>> NeighbourConvolution(3, 2)(torch.randn(2, 3), Graph([(0, 1)])).shape
    torch.Size([2, 2])
    """

    hops = 1

    def __init__(self, dim: int, out: int):
        super().__init__()
        self.project, self.own = nn.Linear(dim, out), nn.Linear(dim, out, bias=False)

    def forward(self, x: Any, graph: Graph) -> Tensor:
        check(self, x, graph)
        pattern, value = graph.normalised("none", loops=False, dtype=x.dtype)
        if isinstance(x, Tensor):
            return self.project(sparse_product(pattern, value, x)) + self.own(x)
        bias = self.project.bias
        return sparse_product(pattern, value, project(self.project, x) - bias) + bias + project(self.own, x)


@part
class TrainableAdjacency(GraphLayer):
    r"""Graph convolution whose weights of edges are trained, from those of the normalised adjacency matrix on.

    .. math::
        H = (S \odot \hat A) X W + b, \qquad S_{ij} = 1 \text{ at first}

    One number for each edge, so that the layer belongs to one graph of `edges` edges, given in the same order each time.
    Shapes: x (n, d) -> (n, out). Book: Alice 12.3.

    >>> layer, graph = TrainableAdjacency(3, 2, edges=4), Graph.undirected([(0, 1), (2, 3)])
    >>> layer(torch.randn(4, 3), graph).shape
    torch.Size([4, 2])
    """

    hops = 1

    def __init__(self, dim: int, out: int, *, edges: int, norm: str = "symmetric"):
        super().__init__()
        self.norm, self.project = norm, nn.Linear(dim, out, bias=False)
        self.scale, self.bias = nn.Parameter(torch.ones(edges)), nn.Parameter(torch.zeros(out))
        glorot(self.project.weight)

    def laws(self) -> tuple[Any, ...]:
        """The order of nodes means nothing; the order of edges, and other graphs, do."""
        return graph_locality, gradients, determinism

    def forward(self, x: Any, graph: Graph) -> Tensor:
        check(self, x, graph)
        if graph.edges.shape[1] != len(self.scale):
            raise WonderlandError(
                f"TrainableAdjacency has a weight for each of {len(self.scale):,} edges, and this graph has {graph.edges.shape[1]:,}."
            )
        pattern, value = graph.normalised(self.norm, loops=False, dtype=x.dtype)
        return sparse_product(pattern, value * graph.sorted_edges(self.scale), project(self.project, x)) + self.bias
