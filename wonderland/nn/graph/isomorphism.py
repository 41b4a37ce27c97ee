"""Graph isomorphism networks: sums that tell multisets of neighbours apart, as far as the Weisfeiler-Lehman test does."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.ops.segment import segment_sum
from wonderland.ops.sparse_product import sparse_product


def two_layers(dim: int, out: int, *, norm: bool = True) -> nn.Sequential:
    """The MLP of published GIN models: two layers with batch norm between."""
    middle = [nn.BatchNorm1d(out)] if norm else []
    return nn.Sequential(nn.Linear(dim, out), *middle, nn.ReLU(), nn.Linear(out, out))


@part
class GIN(GraphLayer):
    r"""An MLP of a node and the plain sum of its neighbours.

    .. math::
        h_i = \mathrm{MLP}\big((1 + \epsilon) x_i + \textstyle\sum_{j \in N(i)} x_j\big)

    `mlp` replaces the two layers with batch norm; with `learn_epsilon` :math:`\epsilon` is learned. Shapes: x (n, d) -> (n, out).
    Paper: Xu et al., 2019.

    >>> GIN(3, 2)(torch.randn(4, 3), Graph.undirected([(0, 1), (2, 3)])).shape
    torch.Size([4, 2])
    """

    hops = 1

    def __init__(
        self, dim: int, out: int, *, epsilon: float = 0.0, learn_epsilon: bool = False, mlp: nn.Module | None = None
    ):
        super().__init__()
        self.mlp = two_layers(dim, out) if mlp is None else mlp
        self.epsilon = nn.Parameter(torch.tensor(epsilon)) if learn_epsilon else epsilon

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        pattern, value = graph.normalised("none", loops=False, dtype=x.dtype)
        return self.mlp((1 + self.epsilon) * x + sparse_product(pattern, None if graph.weight is None else value, x))


@part
class GINE(GraphLayer):
    r"""GIN with features of edges.

    .. math::
        h_i = \mathrm{MLP}\big((1 + \epsilon) x_i + \textstyle\sum_{j \in N(i)} \mathrm{ReLU}(x_j + U e_{ij})\big)

    Shapes: x (n, d), edge (m, edge_dim) -> (n, out). Paper: Hu et al., 2020.

    >>> GINE(3, 2, edge_dim=1)(torch.randn(2, 3), Graph.undirected([(0, 1)]), torch.ones(2, 1)).shape
    torch.Size([2, 2])
    """

    hops = 1

    def __init__(
        self,
        dim: int,
        out: int,
        *,
        edge_dim: int,
        epsilon: float = 0.0,
        learn_epsilon: bool = False,
        mlp: nn.Module | None = None,
    ):
        super().__init__()
        self.mlp = two_layers(dim, out) if mlp is None else mlp
        self.edge = nn.Linear(edge_dim, dim)
        self.epsilon = nn.Parameter(torch.tensor(epsilon)) if learn_epsilon else epsilon

    def forward(self, x: Tensor, graph: Graph, edge: Tensor) -> Tensor:
        check(self, x, graph, edge)
        message = F.relu(x[graph.edges[0]] + self.edge(edge))
        return self.mlp((1 + self.epsilon) * x + segment_sum(message, graph.edges[1], graph.nodes))
