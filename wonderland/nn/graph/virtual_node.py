"""A virtual node: one node more in each graph, joined to all others, through which they talk in two steps."""

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.ops.segment import segment_sum


@part
class VirtualNode(GraphLayer):
    r"""The state of each graph is given to its nodes, and gathers them again.

    .. math::
        x_i \leftarrow x_i + v_g, \qquad v_g \leftarrow v_g + \mathrm{MLP}\big(v_g + \textstyle\sum_{i \in g} x_i\big)

    `state` None starts with a learned vector. Shapes: x (n, d), state (graphs, d) -> both. Paper: Gilmer et al., 2017.

    >>> x, state = VirtualNode(4)(torch.zeros(2, 4), Graph([(0, 1)]))
    >>> x.shape, state.shape
    (torch.Size([2, 4]), torch.Size([1, 4]))
    """

    def __init__(self, dim: int):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(1, dim))
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.LayerNorm(2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, x: Tensor, graph: Graph, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        check(self, x, graph)
        held = self.first.expand(graph.graphs, -1) if state is None else state
        x = x + held[graph.node_graph]
        return x, held + self.mlp(held + segment_sum(x, graph.node_graph, graph.graphs))
