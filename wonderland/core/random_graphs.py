"""Graphs made by a rule: Erdos-Renyi, Barabasi-Albert, stochastic blocks, grids, paths, circles, complete graphs."""

from collections.abc import Sequence

import numpy as np
import torch

from wonderland.core.errors import WonderlandError
from wonderland.core.graph import Graph


def _draws(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def erdos_renyi(nodes: int, p: float, *, seed: int = 0) -> Graph:
    """Each pair of nodes is joined with probability p; degrees are binomial.

    >>> erdos_renyi(5, 1.0)
    <Graph: 5 nodes, 20 edges>
    """
    if not 0 <= p <= 1:
        raise WonderlandError(f"The probability of an edge is between 0 and 1, not {p}.")
    pairs = torch.triu_indices(nodes, nodes, 1)
    kept = torch.from_numpy(_draws(seed).random(pairs.shape[1]) < p)
    return Graph.undirected(pairs[:, kept], nodes)


def barabasi_albert(nodes: int, links: int = 3, *, seed: int = 0) -> Graph:
    """Nodes come one after another, and each joins `links` others with probability proportional to their degree: hubs arise.

    >>> barabasi_albert(10, 3).edges.shape
    torch.Size([2, 42])
    """
    if not 1 <= links < nodes:
        raise WonderlandError(f"Each node joins at least 1 and fewer than {nodes} others, not {links}.")
    draw, pairs = _draws(seed), []
    ends: list[int] = list(range(links))
    for node in range(links, nodes):
        chosen: set[int] = set()
        while len(chosen) < links:
            chosen.add(ends[int(draw.integers(len(ends)))])
        pairs += [(other, node) for other in sorted(chosen)]
        ends += [*sorted(chosen), *[node] * links]
    return Graph.undirected(pairs, nodes)


def stochastic_blocks(
    sizes: Sequence[int], within: float, between: float, *, seed: int = 0
) -> tuple[Graph, torch.Tensor]:
    """Groups of nodes, joined with one probability within a group and another between groups; and the group of each node.

    >>> graph, group = stochastic_blocks([2, 2], 1.0, 0.0)
    >>> graph.homophily(group), group.tolist()
    (1.0, [0, 0, 1, 1])
    """
    group = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(list(sizes)))
    pairs = torch.triu_indices(len(group), len(group), 1)
    chance = torch.where(group[pairs[0]] == group[pairs[1]], within, between)
    kept = torch.from_numpy(_draws(seed).random(pairs.shape[1])) < chance
    return Graph.undirected(pairs[:, kept], len(group)), group


def random_edges(nodes: int, edges: int, *, seed: int = 0) -> Graph:
    """A large undirected graph with about so many directed edges, loops and repeated pairs left out.

    >>> random_edges(1000, 10_000).is_undirected
    True
    """
    pairs = torch.from_numpy(_draws(seed).integers(0, nodes, (2, edges // 2)))
    pairs = pairs[:, pairs[0] != pairs[1]].sort(0).values
    key = (pairs[0] * nodes + pairs[1]).unique()
    return Graph.undirected(torch.stack([key // nodes, key % nodes]), nodes)


def grid(height: int, width: int) -> Graph:
    """Pixels or patches as nodes, row after row; those that share a border are joined.

    >>> grid(8, 8).edges.shape[1] // 2
    112
    """
    place = torch.arange(height * width).view(height, width)
    across = torch.stack([place[:, :-1].flatten(), place[:, 1:].flatten()])
    down = torch.stack([place[:-1].flatten(), place[1:].flatten()])
    return Graph.undirected(torch.cat([across, down], 1), height * width)


def path(nodes: int) -> Graph:
    """A sequence as a graph: each node is joined to the next.

    >>> path(3).edges.tolist()
    [[0, 1, 1, 2], [1, 2, 0, 1]]
    """
    return Graph.undirected(torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)]), nodes)


def circle(nodes: int) -> Graph:
    """A path whose ends are joined."""
    return Graph.undirected(torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes]), nodes)


def complete(nodes: int) -> Graph:
    """Every node joined to every other."""
    return Graph.undirected(torch.triu_indices(nodes, nodes, 1), nodes)
