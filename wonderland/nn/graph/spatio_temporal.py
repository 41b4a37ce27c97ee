"""Graphs whose nodes carry series: a convolution over time at each node, then over the graph."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.ops.sparse_product import sparse_product


@part
class SpatioTemporal(GraphLayer):
    r"""A causal convolution over the series of each node, summed over its neighbours.

    .. math::
        h_i = \sum_{j \in N(i)} \hat A_{ij}\, \mathrm{conv}(x_j)

    Shapes: x (n, t, d) -> (n, t, out); time step s sees steps up to s. Book: Alice 12.3.

    >>> import torch
    >>> SpatioTemporal(2, 3, width=3)(torch.randn(4, 10, 2), Graph.undirected([(0, 1), (2, 3)])).shape
    torch.Size([4, 10, 3])
    """

    hops = 1

    def __init__(self, dim: int, out: int, *, width: int = 3, norm: str = "symmetric"):
        super().__init__()
        self.norm, self.conv = norm, nn.Conv1d(dim, out, width)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        pattern, value = graph.normalised(self.norm, dtype=x.dtype)
        h = self.conv(F.pad(x.transpose(1, 2), (self.conv.kernel_size[0] - 1, 0))).transpose(1, 2)
        return sparse_product(pattern, value, h.flatten(1)).view(h.shape)
