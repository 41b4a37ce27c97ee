"""Propagation without weights: diffusion, personalised PageRank, and labels that spread over a graph."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.ops.sparse_product import sparse_product


@part
class PersonalisedPropagation(GraphLayer):
    r"""Predictions spread over the graph and are drawn back to where they started (APPNP).

    .. math::
        Z_0 = X, \qquad Z_{k+1} = (1 - \alpha) \hat A Z_k + \alpha X

    `dropout` drops entries of :math:`\hat A` in each step of training. Shapes: x (n, d) -> (n, d).
    Paper: Gasteiger et al., 2019.

    >>> PersonalisedPropagation(steps=3)(torch.eye(2), Graph.undirected([(0, 1)])).shape
    torch.Size([2, 2])
    """

    def __init__(self, steps: int = 10, alpha: float = 0.1, *, dropout: float = 0.0, norm: str = "symmetric"):
        super().__init__()
        self.steps, self.alpha, self.dropout, self.norm = steps, alpha, dropout, norm
        self.hops = steps

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        check(self, x, graph)
        pattern, value = graph.normalised(self.norm, dtype=x.dtype)
        h = x
        for _ in range(self.steps):
            kept = F.dropout(value, self.dropout, self.training)
            h = torch.lerp(sparse_product(pattern, kept, h), x, self.alpha)
        return h


def diffuse(x: Tensor, graph: Graph, *, steps: int = 1, rate: float | None = None) -> Tensor:
    r"""Heat flows along edges: :math:`x \leftarrow x - \epsilon L x` with the combinatorial Laplacian of an undirected graph.

    `rate` is :math:`\epsilon`, by default half of 1 / (largest degree), which is below :math:`2 / \lambda_{max}`; the mean of
    each component is kept, and is the limit. Shapes: x (n, d) -> (n, d). Book: Alice 12.1.

    >>> diffuse(torch.tensor([[1.0], [0.0]]), Graph.undirected([(0, 1)]), steps=50).round(decimals=4).flatten()
    tensor([0.5000, 0.5000])
    """
    pattern, value = graph.normalised("none", loops=False, dtype=x.dtype)
    degree = graph.degree.to(x.dtype)[:, None]
    rate = 0.5 / max(1e-12, float(degree.max())) if rate is None else rate
    for _ in range(steps):
        x = x - rate * (degree * x - sparse_product(pattern, value, x))
    return x


def label_propagation(
    classes: Tensor, graph: Graph, count: int, *, steps: int = 50, alpha: float = 0.9, norm: str = "symmetric"
) -> Tensor:
    r"""Classes of some nodes spread to the others.

    .. math::
        Y \leftarrow \alpha \hat A Y + (1 - \alpha) Y_0, \quad \text{values kept within } [0, 1]

    Shapes: classes (n,), -1 where unknown -> shares (n, count), rows that nothing reaches uniform.
    Paper: Zhu and Ghahramani, 2002.

    >>> label_propagation(torch.tensor([0, -1, 1]), Graph.undirected([(0, 1)], 3), 2).argmax(1)
    tensor([0, 0, 1])
    """
    if len(classes) != graph.nodes:
        raise WonderlandError(
            f"label_propagation takes a class for each of {graph.nodes:,} nodes, not {len(classes):,}."
        )
    known = classes >= 0
    first = torch.zeros(graph.nodes, count)
    first[known] = F.one_hot(classes[known], count).float()
    pattern, value = graph.normalised(norm, loops=False, dtype=torch.float32)
    y = first
    for _ in range(steps):
        y = (alpha * sparse_product(pattern, value, y) + (1 - alpha) * first).clamp(0, 1)
    total = y.sum(1, keepdim=True)
    return torch.where(total > 0, y / total.clamp(min=1e-30), 1 / count)


def manifold_penalty(f: Tensor, graph: Graph) -> Tensor:
    r"""How little a function is smooth on a graph: :math:`\mathrm{tr}(F^\top L F) = \sum_{\{i,j\}} A_{ij} \|f_i - f_j\|^2`.

    Each undirected edge counts once; added to a loss it teaches from points without labels. Shapes: f (n, d) -> ().
    Book: Alice 12.1.4.

    >>> manifold_penalty(torch.tensor([[1.0], [2], [3], [4]]), Graph.undirected([(0, 1), (0, 2), (1, 2), (1, 3)]))
    tensor(10.)
    """
    difference = (f[graph.edges[0]] - f[graph.edges[1]]).square().sum(-1)
    return (difference * graph.value(f.dtype)).sum() / (2 if graph.is_undirected else 1)


def similarity_graph(x: Tensor, threshold: float) -> Graph:
    r"""Points that are near are joined: :math:`A_{ij} = e^{-\|x_i - x_j\|^2}` where the squared distance is below a threshold.

    Shapes: x (n, d). Book: Alice 12.1.4.

    >>> similarity_graph(torch.tensor([[0.0], [0.5], [9.0]]), 1.0)
    <Graph: 3 nodes, 2 edges>
    """
    squared = torch.cdist(x, x).square()
    near = squared < threshold
    near.fill_diagonal_(False)
    target, source = near.nonzero(as_tuple=True)
    return Graph(torch.stack([source, target]), len(x), weight=(-squared[near]).exp())
