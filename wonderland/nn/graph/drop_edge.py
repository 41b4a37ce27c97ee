"""DropEdge: a different part of the edges in every step of training."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer


@part
class DropEdge(GraphLayer):
    """Each edge is left out with probability p while training; the two directions of an undirected edge go together.

    Gives the graph and the numbers of the edges that are kept (None for all). Paper: Rong et al., 2020.

    >>> DropEdge(0.5).eval()(Graph([(0, 1)]))
    (<Graph: 2 nodes, 1 edges>, None)
    """

    def __init__(self, p: float = 0.1):
        super().__init__()
        if not 0 <= p < 1:
            raise WonderlandError(f"DropEdge takes a probability of at least 0 and below 1, not {p}.")
        self.p = p

    def forward(self, graph: Graph) -> tuple[Graph, Tensor | None]:
        if not self.training or not self.p:
            return graph, None
        edges = graph.edges
        if graph.is_undirected:
            low, high = edges.min(0).values, edges.max(0).values
            pair = torch.unique(low * max(1, graph.nodes) + high, return_inverse=True)[1]
            keep = (torch.rand(int(pair.max()) + 1 if len(pair) else 0) >= self.p)[pair]
        else:
            keep = torch.rand(edges.shape[1]) >= self.p
        kept = keep.nonzero()[:, 0]
        return graph.keep(kept), kept
