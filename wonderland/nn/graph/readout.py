"""Readouts: from nodes to one vector for each graph. The order of nodes does not matter."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.nn.graph.message_passing import reduction
from wonderland.ops.segment import segment_softmax, segment_sum


@part
class Readout(GraphLayer):
    r"""Sums, means or maxima over the nodes of each graph, side by side where several are named.

    Shapes: x (n, d) -> (graphs, len(how) * d); a graph without nodes gives 0. Book: Alice 12.2.

    >>> Readout(["sum", "mean"])(torch.ones(3, 2), Graph([], 3))
    tensor([[3., 3., 1., 1.]])
    """

    def __init__(self, how: Sequence[str] = ("mean",)):
        super().__init__()
        self.how = [reduction(name) for name in ([how] if isinstance(how, str) else how)]

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        return torch.cat([reduce(x, graph.node_graph, graph.graphs) for reduce in self.how], 1)


@part
class AttentionReadout(GraphLayer):
    r"""A sum over nodes, weighted by a softmax over the graph: :math:`y_g = \sum_{i \in g} \operatorname{softmax}_i(s(x_i))\, x_i`.

    Shapes: x (n, d) -> (graphs, d). Paper: Li et al., 2016.

    >>> AttentionReadout(2)(torch.ones(3, 2), Graph([], 3)).detach()
    tensor([[1., 1.]])
    """

    def __init__(self, dim: int):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        share = segment_softmax(self.score(x), graph.node_graph, graph.graphs)
        return segment_sum(share * x, graph.node_graph, graph.graphs)


@part
class Set2Set(GraphLayer):
    r"""An LSTM asks the nodes several times, each time attending to those that answer its state.

    .. math::
        q_t = \mathrm{LSTM}(q^*_{t-1}), \qquad r_t = \sum_{i \in g} \operatorname{softmax}_i(x_i^\top q_t)\, x_i, \qquad q^*_t = [q_t \| r_t]

    Shapes: x (n, d) -> (graphs, 2 d). Paper: Vinyals et al., 2016.

    >>> Set2Set(2)(torch.ones(3, 2), Graph([], 3)).shape
    torch.Size([1, 4])
    """

    def __init__(self, dim: int, steps: int = 3):
        super().__init__()
        self.steps, self.cell = steps, nn.LSTMCell(2 * dim, dim)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        of, count = graph.node_graph, graph.graphs
        both, state = x.new_zeros(count, 2 * x.shape[1]), None
        for _ in range(self.steps):
            state = self.cell(both, state)
            share = segment_softmax((x * state[0][of]).sum(1), of, count)
            both = torch.cat([state[0], segment_sum(share[:, None] * x, of, count)], 1)
        return both
