"""Gated graph network: messages update the state of each node as inputs update a GRU."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check, glorot
from wonderland.ops.sparse_product import sparse_product


@part
class GatedGraph(GraphLayer):
    r"""Several rounds of messages into a gated recurrent unit, whose weights the rounds share.

    .. math::
        m_i = \sum_{j \in N(i)} A_{ij} W_t h_j, \qquad h_i \leftarrow \mathrm{GRU}(m_i, h_i)

    Features narrower than the state are filled up with zeros. Shapes: x (n, at most dim) -> (n, dim). Paper: Li et al., 2016.

    >>> GatedGraph(4, steps=3)(torch.randn(2, 3), Graph.undirected([(0, 1)])).shape
    torch.Size([2, 4])
    """

    def __init__(self, dim: int, *, steps: int = 3):
        super().__init__()
        self.dim, self.hops = dim, steps
        self.weight = nn.Parameter(torch.empty(steps, dim, dim))
        self.update = nn.GRUCell(dim, dim)
        glorot(*self.weight.data.unbind())

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        if x.shape[1] > self.dim:
            raise WonderlandError(
                f"GatedGraph with a state of {self.dim} takes at most as many features, not {x.shape[1]}."
            )
        pattern, value = graph.normalised("none", loops=False, dtype=x.dtype)
        h = F.pad(x, (0, self.dim - x.shape[1]))
        for weight in self.weight:
            h = self.update(sparse_product(pattern, value, h @ weight), h)
        return h
