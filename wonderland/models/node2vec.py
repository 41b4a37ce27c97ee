"""Node2vec: vectors of nodes from random walks, learned as vectors of words are learned from sentences."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.nn.contract.arguments import Checked


def random_walks(graph: Graph, starts: Tensor, length: int, generator: torch.Generator | None = None) -> Tensor:
    """Walks along edges from each start: (walks, length + 1). Where no edge leaves a node, the walk stays.

    Each step takes one of the edges that leave the node, in proportion to their weights.

    >>> random_walks(Graph([(0, 1), (1, 2)]), torch.tensor([0]), 3).tolist()
    [[0, 1, 2, 2]]
    """
    pattern, place = graph.pattern.transposed
    weight = None if graph.weight is None else graph.sorted_edges(graph.weight)[place].clamp(min=0).double()
    total = None if weight is None else torch.cat([weight.new_zeros(1), weight.cumsum(0)])
    here, walk = starts, [starts]
    for _ in range(length):
        begin, count = pattern.start[here], pattern.count[here]
        draw = torch.rand(len(here), generator=generator, dtype=torch.float64)
        if total is None:
            step = begin + (draw * count).long()
        else:
            low, high = total[begin], total[begin + count]
            step = torch.searchsorted(total, low + draw * (high - low), right=True) - 1
            step = torch.minimum(step, (begin + count - 1).clamp(min=0))
        step = step.clamp(max=max(0, len(pattern) - 1))
        here = torch.where(count > 0, pattern.column[step] if len(pattern) else here, here)
        walk.append(here)
    return torch.stack(walk, 1)


@part
class Node2Vec(Checked, nn.Module):
    r"""A vector for each node, such that nodes near each other on random walks have similar ones.

    .. math::
        L = -\log \sigma(z_i^\top z_j) - \sum_{k \sim \text{uniform}} \log \sigma(-z_i^\top z_k)

    for nodes j within `window` steps of i on a walk. `loss(graph, starts)` draws the walks. Paper: Grover and Leskovec, 2016 (with
    p = q = 1, which is DeepWalk).

    >>> Node2Vec(5, 4).loss(Graph.undirected([(0, 1), (1, 2)], 5), torch.arange(5)).shape
    torch.Size([])
    """

    def __init__(self, nodes: int, dim: int = 64, *, length: int = 10, window: int = 3, negatives: int = 5):
        super().__init__()
        if not 1 <= window <= length:
            raise WonderlandError(f"The window of walks is between 1 and their length {length}, not {window}.")
        self.table = nn.Embedding(nodes, dim)
        nn.init.normal_(self.table.weight, std=dim**-0.5)
        self.length, self.window, self.negatives = length, window, negatives

    def forward(self, nodes: Tensor) -> Tensor:
        return self.table(nodes)

    def loss(self, graph: Graph, starts: Tensor) -> Tensor:
        """The loss on walks from some nodes."""
        walk = random_walks(graph, starts, self.length)
        pairs = [torch.stack([walk[:, :-gap].flatten(), walk[:, gap:].flatten()]) for gap in range(1, self.window + 1)]
        first, second = torch.cat(pairs, 1)
        other = torch.randint(0, graph.nodes, (len(first), self.negatives))
        z = self.table(first)
        near = F.logsigmoid((z * self.table(second)).sum(-1))
        far = F.logsigmoid(-(z[:, None] * self.table(other)).sum(-1)).sum(-1)
        return -(near + far).mean()
