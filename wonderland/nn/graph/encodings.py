"""Structural encodings: numbers that say where in its graph a node is, for models that would not see it."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer
from wonderland.ops.sparse_product import sparse_product

LARGEST = 4096


def _small(graph: Graph, name: str) -> None:
    if int(graph.sizes.max()) > LARGEST:
        raise WonderlandError(f"{name} takes graphs of at most {LARGEST:,} nodes: it needs a dense matrix of each.")


def random_walk_encoding(graph: Graph, steps: int = 8) -> Tensor:
    r"""The chance that a random walk is back where it began, after 1, 2, ... steps: :math:`\mathrm{diag}(R^k)`, :math:`R = A D^{-1}`.

    Shapes: -> (n, steps). Graphs of a batch are walked one by one. Book: Alice 12.3.

    >>> random_walk_encoding(Graph.undirected([(0, 1), (0, 2), (1, 2), (1, 3)]), 2)[:, 1]
    tensor([0.4167, 0.6667, 0.4167, 0.3333])
    """
    _small(graph, "random_walk_encoding")
    encoding = torch.zeros(graph.nodes, steps)
    for nodes in graph.sizes.tolist() and torch.arange(graph.nodes).split(graph.sizes.tolist()):
        inner, _ = graph.subgraph(nodes)
        pattern, value = inner.normalised("column", loops=False)
        power = torch.eye(inner.nodes)
        for k in range(steps):
            power = sparse_product(pattern, value, power)
            encoding[nodes, k] = power.diagonal()
    return encoding


def laplacian_encoding(graph: Graph, size: int = 8) -> Tensor:
    """Eigenvectors of the normalised Laplacian with the smallest eigenvalues, the first left out: (n, size), zeros where there are fewer.

    The sign of an eigenvector means nothing: training flips it at random (`flip`). Edges count in both directions.
    """
    _small(graph, "laplacian_encoding")
    encoding = torch.zeros(graph.nodes, size)
    for nodes in graph.sizes.tolist() and torch.arange(graph.nodes).split(graph.sizes.tolist()):
        inner, _ = graph.subgraph(nodes)
        a = inner.adjacency(torch.float64)
        a = torch.maximum(a, a.t())
        root = torch.where(a.sum(1) > 0, a.sum(1).clamp(min=1e-30).rsqrt(), 0.0)
        vectors = torch.linalg.eigh(torch.eye(len(a), dtype=a.dtype) - root[:, None] * a * root).eigenvectors
        kept = vectors[:, 1 : size + 1]
        largest = kept.abs().argmax(0)  # a sign that is the same each time
        kept = kept * kept[largest, torch.arange(kept.shape[1])].sign()
        encoding[nodes, : kept.shape[1]] = kept.float()
    return encoding


def flip(encoding: Tensor) -> Tensor:
    """Columns with random signs, the same for all nodes of the call: (n, k) -> (n, k)."""
    return encoding * (torch.randint(0, 2, (1, encoding.shape[1]), device=encoding.device) * 2 - 1).to(encoding.dtype)


def anchor_encoding(graph: Graph, anchors: Tensor) -> Tensor:
    """1 / (1 + distance) to each of some nodes, 0 where there is no path: (n, anchors)."""
    return 1 / (1 + graph.distances(anchors).t())


@part
class DegreeEmbedding(GraphLayer):
    """A vector for each degree, added to the features; degrees above `most` share one.

    Shapes: x (n, d) -> (n, d).

    >>> DegreeEmbedding(4)(torch.zeros(2, 4), Graph([(0, 1)])).shape
    torch.Size([2, 4])
    """

    hops = 1

    def __init__(self, dim: int, *, most: int = 64):
        super().__init__()
        self.table = nn.Embedding(most + 1, dim)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        count = torch.bincount(graph.edges[1], minlength=graph.nodes)
        return x + self.table(count.clamp(max=self.table.num_embeddings - 1))
