"""GraphSAGE: a node beside a summary of its neighbours."""

from typing import Any

from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check, project
from wonderland.ops.segment import segment_max
from wonderland.ops.sparse_product import sparse_product


@part
class GraphSAGE(GraphLayer):
    r"""The node itself and the mean (or sum, or maximum) of its neighbours, each with weights of its own.

    .. math::
        h_i = V x_i + W \operatorname{mean}_{j \in N(i)} x_j + b

    Shapes: x (n, d) -> (n, out). Weights of edges weigh the mean and the sum. Paper: Hamilton et al., 2017.

    >>> import torch
    >>> GraphSAGE(3, 2)(torch.randn(2, 3), Graph([(0, 1)])).shape
    torch.Size([2, 2])
    """

    hops = 1

    def __init__(self, dim: int, out: int, *, reduce: str = "mean"):
        super().__init__()
        if reduce not in ("mean", "sum", "max"):
            raise WonderlandError(f"GraphSAGE reduces by mean, sum or max, not {reduce!r}.")
        self.reduce = reduce
        self.project, self.own = nn.Linear(dim, out), nn.Linear(dim, out, bias=False)

    def forward(self, x: Any, graph: Graph) -> Tensor:
        check(self, x, graph)
        if self.reduce == "max":
            x = x if isinstance(x, Tensor) else x.dense()
            return self.project(segment_max(x[graph.edges[0]], graph.edges[1], graph.nodes)) + self.own(x)
        norm = "row" if self.reduce == "mean" else "none"
        pattern, value = graph.normalised(norm, loops=False, dtype=x.dtype)
        wide = self.project.in_features > self.project.out_features
        if isinstance(x, Tensor) and not wide:
            return self.project(sparse_product(pattern, value, x)) + self.own(x)
        bias = self.project.bias
        return sparse_product(pattern, value, project(self.project, x) - bias) + bias + project(self.own, x)
