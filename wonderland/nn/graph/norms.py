"""Norms over the nodes of each graph."""

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.ops.segment import segment_mean


@part
class GraphNorm(GraphLayer):
    r"""Features of a graph's nodes with mean removed, as much of it as is learned, and unit spread.

    .. math::
        y = \gamma \frac{x - \alpha \mu_g}{\sqrt{\operatorname{mean}_g (x - \alpha \mu_g)^2 + \epsilon}} + \beta

    Shapes: x (n, d) -> (n, d). Paper: Cai et al., 2021.

    >>> GraphNorm(2)(torch.tensor([[1.0, 0], [3, 0]]), Graph([(0, 1)])).detach().round(decimals=2)[:, 0]
    tensor([-1.,  1.])
    """

    def __init__(self, dim: int, epsilon: float = 1e-5):
        super().__init__()
        self.weight, self.bias, self.share = (
            nn.Parameter(torch.ones(dim)),
            nn.Parameter(torch.zeros(dim)),
            nn.Parameter(torch.ones(dim)),
        )
        self.epsilon = epsilon
        self.no_decay = {"weight", "share"}

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        of = graph.node_graph
        x = x - self.share * segment_mean(x, of, graph.graphs)[of]
        spread = (segment_mean(x.square(), of, graph.graphs) + self.epsilon).rsqrt()
        return self.weight * x * spread[of] + self.bias


@part
class PairNorm(GraphLayer):
    r"""Nodes centred, and scaled so that their mean squared distance stays what it was: deep stacks do not smooth everything away.

    .. math::
        y_i = s \frac{x_i - \mu}{\sqrt{\operatorname{mean}_i \|x_i - \mu\|^2}}

    Shapes: x (n, d) -> (n, d), each graph for itself. Paper: Zhao and Akoglu, 2020.

    >>> PairNorm()(torch.tensor([[1.0], [3.0]]), Graph([(0, 1)])).flatten().round(decimals=3)
    tensor([-1.,  1.])
    """

    def __init__(self, scale: float = 1.0, epsilon: float = 1e-5):
        super().__init__()
        self.scale, self.epsilon = scale, epsilon

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        of = graph.node_graph
        x = x - segment_mean(x, of, graph.graphs)[of]
        size = segment_mean(x.square().sum(1, keepdim=True), of, graph.graphs)
        return self.scale * x / (self.epsilon + size[of]).sqrt()
