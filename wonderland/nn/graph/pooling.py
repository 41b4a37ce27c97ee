"""Pooling: smaller graphs from larger ones."""

import math

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph, _made
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.nn.graph.transformer import padded_rows


@part
class TopKPooling(GraphLayer):
    r"""The best nodes of each graph by a learned score, gated by it.

    .. math::
        s = \tanh(X p / \|p\|), \qquad X' = (X \odot s)_{top}, \qquad A' = A_{top, top}

    Each graph keeps a share of its nodes, at least one. Gives the features, the graph, the numbers of the nodes that are kept,
    and those of the edges. Paper: Gao and Ji, 2019.

    >>> x, graph, nodes, _ = TopKPooling(2, 0.5)(torch.randn(4, 2), Graph.undirected([(0, 1), (2, 3)]))
    >>> x.shape, graph.nodes
    (torch.Size([2, 2]), 2)
    """

    def __init__(self, dim: int, share: float = 0.5):
        super().__init__()
        if not 0 < share <= 1:
            raise WonderlandError(f"TopKPooling keeps a share of the nodes above 0 and at most 1, not {share}.")
        self.share, self.direction = share, nn.Parameter(torch.empty(dim).uniform_(-1, 1) / math.sqrt(dim))

    def forward(self, x: Tensor, graph: Graph) -> tuple[Tensor, Graph, Tensor, Tensor]:
        check(self, x, graph)
        score = torch.tanh(x @ self.direction / self.direction.norm().clamp(min=1e-12))
        of, sizes = graph.node_graph, graph.sizes
        by_score = torch.argsort(score.detach(), descending=True, stable=True)
        order = by_score[torch.argsort(of[by_score], stable=True)]
        rank = torch.arange(graph.nodes) - (sizes.cumsum(0) - sizes)[of[order]]
        most = (sizes * self.share).ceil().long().clamp(min=1)
        nodes = order[rank < most[of[order]]].sort().values
        smaller, edges = graph.subgraph(nodes)
        if graph.member is not None:
            smaller = _made(smaller.edges, smaller.nodes, smaller.weight, graph.member[nodes], graph.graphs)
        return x[nodes] * score[nodes, None], smaller, nodes, edges


@part
class ClusterPooling(GraphLayer):
    r"""Nodes are assigned to a few clusters, softly; clusters are the nodes of a dense graph (DiffPool).

    .. math::
        S = \operatorname{softmax}(X W), \qquad X' = S^\top X, \qquad A' = S^\top A S

    Gives X' (graphs, clusters, d), A' (graphs, clusters, clusters), and two penalties: how far :math:`S S^\top` is from A for
    each pair, and the entropy of the assignments. Paper: Ying et al., 2018.

    >>> x, a, link, entropy = ClusterPooling(2, 3)(torch.randn(4, 2), Graph.undirected([(0, 1), (2, 3)]))
    >>> x.shape, a.shape
    (torch.Size([1, 3, 2]), torch.Size([1, 3, 3]))
    """

    def __init__(self, dim: int, clusters: int):
        super().__init__()
        self.assign = nn.Linear(dim, clusters)

    def forward(self, x: Tensor, graph: Graph) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        check(self, x, graph)
        share = self.assign(x).softmax(-1)
        rows, _ = padded_rows(x, graph)
        shares, _ = padded_rows(share, graph)
        a = dense_adjacency(graph, x.dtype)
        link = (a - shares @ shares.mT).norm() / max(1, a.numel())
        entropy = -(share * (share + 1e-15).log()).sum(-1).mean() if len(x) else x.new_zeros(())
        return shares.mT @ rows, shares.mT @ a @ shares, link, entropy


def dense_adjacency(graph: Graph, dtype: torch.dtype = torch.float32) -> Tensor:
    """The adjacency matrix of each graph, filled up with zeros: (graphs, longest, longest)."""
    sizes, of = graph.sizes, graph.node_graph
    longest = int(sizes.max()) if len(sizes) else 0
    place = torch.arange(graph.nodes) - (sizes.cumsum(0) - sizes)[of]
    source, target = graph.edges
    adjacency = torch.zeros(graph.graphs, longest, longest, dtype=dtype)
    return adjacency.index_put((of[target], place[target], place[source]), graph.value(dtype), accumulate=True)
