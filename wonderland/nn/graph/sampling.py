"""Parts of a large graph: sampled neighbourhoods of some nodes, clusters of nodes, and layers applied block after block."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.pattern import SparseRows, ranges

MOST_ROUNDS = 1000  # of a breadth-first search; what is further away keeps its order


class SampledGraph(Graph):
    """A part of a graph whose normalisations use the degrees of the whole, so that sums over a sample estimate those of the whole.

    The weight of a sampled edge is that of the edge times (neighbours / sampled neighbours).
    """

    whole: Graph
    numbers: Tensor

    @staticmethod
    def of(whole: Graph, numbers: Tensor, edges: Tensor, weight: Tensor | None) -> "SampledGraph":
        """Some nodes of a graph, and edges among them in the numbers of the part."""
        sampled = SampledGraph.__new__(SampledGraph)
        sampled._hold(edges, len(numbers), weight, None, 1)
        sampled.__dict__.update(whole=whole, numbers=numbers)
        return sampled

    def _like(self, edges: Tensor, weight: Tensor | None) -> Graph:
        return SampledGraph.of(self.whole, self.numbers, edges, weight)

    def degree_with(self, loops: bool, dtype: torch.dtype) -> Tensor:
        """The degrees that these nodes have in the whole graph."""
        whole = self.whole
        degree = whole.kept(("degree", dtype), lambda: whole.degree_with(False, dtype))[self.numbers]
        return degree + (loop_entries(whole)[self.numbers] < 0).to(dtype) if loops else degree


@dataclass(frozen=True)
class Part:
    """A part of a graph: its nodes by their numbers in the whole, those that were asked for first, and its edges likewise."""

    graph: SampledGraph
    nodes: Tensor
    edges: Tensor
    asked: int

    def rows(self, values: Tensor | SparseRows) -> Tensor | SparseRows:
        """The rows of these nodes."""
        return values.rows(self.nodes) if isinstance(values, SparseRows) else values[self.nodes]


def loop_entries(graph: Graph) -> Tensor:
    """The number of the loop of each node among the edges (n,), -1 where it has none."""

    def make() -> Tensor:
        entry = torch.full((graph.nodes,), -1, dtype=torch.long)
        loops = (graph.edges[0] == graph.edges[1]).nonzero()[:, 0]
        entry[graph.edges[0][loops]] = loops
        return entry

    return graph.kept("loop entries", make)


def sample_neighbours(
    graph: Graph, nodes: Tensor, sizes: Sequence[int | None], generator: torch.Generator | None = None
) -> Part:
    """The nodes, at most sizes[0] edges that end in each, at most sizes[1] that end in each node so reached, and so on.

    None takes all of them. Edges are drawn without replacement; loops are always there and not counted. As many layers on the part
    give estimates for the nodes asked for; with None they are exact. Time and memory grow with the edges that are looked at.

    >>> part = sample_neighbours(Graph.undirected([(0, 1), (0, 2), (0, 3)]), torch.tensor([0]), [2])
    >>> part.graph, part.graph.weight.tolist()
    (<Graph: 3 nodes, 2 edges>, [1.5, 1.5])
    """
    nodes = torch.as_tensor(nodes).reshape(-1)
    if len(nodes.unique()) != len(nodes):
        raise WonderlandError("Neighbours are sampled for nodes that are named once each.")
    known, frontier, edges, scales = nodes, nodes, [], []
    for size in sizes:
        edge, scale = _drawn(graph, frontier, size, generator)
        source = graph.edges[0][edge].unique()
        frontier = source[~torch.isin(source, known)]
        known = torch.cat([known, frontier])
        edges.append(edge)
        scales.append(scale)
    loops = loop_entries(graph)[known]
    loops = loops[loops >= 0]
    chosen = torch.cat([*edges, loops])
    scale = torch.cat([*scales, torch.ones(len(loops))])
    return _part(graph, known, chosen, scale, len(nodes))


def _drawn(graph: Graph, nodes: Tensor, size: int | None, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """Edges that end in these nodes, loops left out, at most `size` for each, and how many edges each stands for."""
    pattern = graph.pattern
    count = pattern.count[nodes]
    entry = ranges(pattern.start[nodes], count)
    row = torch.repeat_interleave(torch.arange(len(nodes)), count)
    plain = pattern.column[entry] != nodes[row]
    entry, row = entry[plain], row[plain]
    count = torch.bincount(row, minlength=len(nodes))
    if size is not None and len(entry) and int(count.max()) > size:
        key = row + torch.rand(len(entry), generator=generator, dtype=torch.float64)
        order = torch.argsort(key)
        rank = torch.arange(len(entry)) - (count.cumsum(0) - count)[row]  # `row` is sorted, and so is row[order]
        order = order[rank < size].sort().values
        entry, row = entry[order], row[order]
        scale = (count / count.clamp(max=size))[row]
    else:
        scale = torch.ones(len(entry))
    return entry if graph.in_order else graph.order[entry], scale


def _part(graph: Graph, nodes: Tensor, edges: Tensor, scale: Tensor, asked: int) -> Part:
    place, order = nodes.sort()
    ends = order[torch.searchsorted(place, graph.edges[:, edges].contiguous())]
    cut = bool((scale != 1).any())
    weight = None if graph.weight is None else graph.weight[edges]
    if cut:
        weight = scale if weight is None else weight * scale.to(weight.dtype)
    return Part(SampledGraph.of(graph, nodes, ends, weight), nodes, edges, asked)


def induced(graph: Graph, nodes: Tensor) -> Part:
    """Some nodes and the edges among them, degrees counted within: a batch of clusters."""
    smaller, edges = graph.subgraph(nodes)
    return Part(
        SampledGraph.of(smaller, torch.arange(len(nodes)), smaller.edges, smaller.weight), nodes, edges, len(nodes)
    )


def clusters(graph: Graph, count: int) -> Tensor:
    """Nodes cut into `count` clusters of about equal size, such that neighbours are mostly together: (n,).

    Breadth-first searches from the first node of every component at once put neighbours side by side; the order is cut into equal
    pieces, then nodes move to the cluster of most of their neighbours while sizes stay within a fifth of the mean. Linear in edges
    for each of a few rounds.

    >>> clusters(Graph.undirected([(0, 2), (2, 4), (1, 3), (3, 5)]), 2).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    if not 1 <= count <= max(1, graph.nodes):
        raise WonderlandError(
            f"A graph of {graph.nodes:,} nodes is cut into 1 to {graph.nodes:,} clusters, not {count:,}."
        )
    order = breadth_first(graph)
    label = torch.empty(graph.nodes, dtype=torch.long)
    label[order] = torch.arange(graph.nodes) * count // max(1, graph.nodes)
    for turn in range(8):
        label = _moved(graph, label, count, turn)
    return label


def breadth_first(graph: Graph) -> Tensor:
    """All nodes, component after component, each from its first node outwards, children of one parent side by side (n,)."""
    component = graph.components()
    both = torch.cat([graph.edges, graph.edges.flip(0)], 1)
    whole = Graph(both, graph.nodes)
    pattern = whole.pattern
    first = torch.full((int(component.max()) + 1 if graph.nodes else 0,), graph.nodes).scatter_reduce(
        0, component, torch.arange(graph.nodes), "amin"
    )
    level = torch.full((graph.nodes,), MOST_ROUNDS + 1)
    rank = torch.zeros(graph.nodes, dtype=torch.long)
    level[first], here = 0, first
    for depth in range(1, MOST_ROUNDS + 1):
        count = pattern.count[here]
        near = pattern.column[ranges(pattern.start[here], count)]
        parent = torch.repeat_interleave(torch.arange(len(here)), count)
        fresh = level[near] > depth
        near, parent = near[fresh], parent[fresh]
        if not len(near):
            break
        order = torch.argsort(parent, stable=True).flip(0)
        rank[near[order]] = parent[order]  # the first parent is written last
        here = near.unique()
        level[here] = depth
        here = here[torch.argsort(rank[here], stable=True)]
        rank[here] = torch.arange(len(here))
    order = torch.argsort(rank, stable=True)
    order = order[torch.argsort(level[order], stable=True)]
    return order[torch.argsort(component[order], stable=True)]


def _moved(graph: Graph, label: Tensor, count: int, turn: int) -> Tensor:
    """Nodes that have more neighbours in another cluster move there, as far as its size allows."""
    source, target = graph.edges
    key, votes = torch.unique(target * count + label[source], return_counts=True)
    node, cluster = key // count, key % count
    most = torch.zeros(graph.nodes, dtype=torch.long).scatter_reduce(0, node, votes, "amax")
    wanted = label.clone()
    best = votes == most[node]
    wanted[node[best]] = cluster[best]
    own = torch.zeros(graph.nodes, dtype=torch.long)
    own[node[cluster == label[node]]] = votes[cluster == label[node]]
    gain = most - own
    moving = ((gain > 0) & (wanted != label) & ((torch.arange(graph.nodes) + turn) % 2 == 0)).nonzero()[:, 0]
    moving = moving[torch.argsort(gain[moving], descending=True, stable=True)]
    mean = graph.nodes / count
    sizes = torch.bincount(label, minlength=count)
    for ends, room in ((wanted, (1.2 * mean - sizes).clamp(min=0)), (label, (sizes - 0.8 * mean).clamp(min=0))):
        group = ends[moving]
        order = torch.argsort(group, stable=True)
        held = torch.bincount(group, minlength=count)
        rank = torch.arange(len(order)) - (held.cumsum(0) - held)[group[order]]
        moving = moving[order[rank < room[group[order]]].sort().values]
    moved = label.clone()
    moved[moving] = wanted[moving]
    return moved


def in_blocks(layer: nn.Module, x: Any, graph: Graph, edge: Tensor | None = None, size: int = 16_384) -> Tensor:
    """A layer of one hop applied to the nodes in blocks, each with all of its neighbours: the same numbers in less memory.

    Memory beside input and output is that of the layer on the edges that end in one block. For layers that look one hop far and
    give a row for each node, without gradients.

    >>> from wonderland.nn.graph.sage import GraphSAGE
    >>> graph, x, layer = Graph.undirected([(0, 1), (1, 2)]), torch.randn(3, 4), GraphSAGE(4, 2)
    >>> torch.allclose(in_blocks(layer, x, graph, size=1), layer(x, graph), atol=1e-6)
    True
    """
    if graph.member is not None and graph.graphs > 1:
        raise WonderlandError("in_blocks takes one graph; a batch of many is cut into smaller batches instead.")
    outputs = []
    for block in torch.arange(graph.nodes).split(size):
        part = sample_neighbours(graph, block, [None])
        given = (part.rows(x), part.graph, *(() if edge is None else (edge[part.edges],)))
        outputs.append(layer(*given)[: part.asked])
    return torch.cat(outputs) if outputs else layer(x, graph, *(() if edge is None else (edge,)))
