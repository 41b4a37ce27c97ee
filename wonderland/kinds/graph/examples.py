"""Encoded graphs, given out as batches: all training nodes of a graph at once, some pairs, or some graphs joined into one."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core.batch import Batch
from wonderland.core.graph import Graph
from wonderland.core.graph_input import GraphInput
from wonderland.core.pattern import SparseRows, ranges
from wonderland.data.examples import CHUNK, RowExamples
from wonderland.kinds.graph.batches import FORMS
from wonderland.kinds.graph.links import pair_features
from wonderland.nn.graph.sampling import Part


class GraphExamples(RowExamples):
    """Examples of one graph (nodes or pairs), or of many (whole graphs).

    Where pairs are learned, a pair that is an edge is not a message in the step that asks about it.
    """

    def __init__(
        self,
        of: str,
        graph: Graph,
        x: Tensor | SparseRows,
        edge: Tensor | None,
        rows: np.ndarray,
        y: np.ndarray | None,
        unit: str,
        *,
        batches: str = "whole",
        hidden: Tensor | None = None,
    ):
        super().__init__(self.given, y, len(rows))
        self.batches = batches
        # Nodes that are hidden from training have no edges in the graph that is learned from.
        self.learned, self.learned_edge = graph, edge
        if hidden is not None and len(hidden):
            gone = torch.zeros(graph.nodes, dtype=torch.bool)
            gone[hidden] = True
            kept = (~gone[graph.edges[0]] & ~gone[graph.edges[1]]).nonzero()[:, 0]
            self.learned, self.learned_edge = graph.keep(kept), None if edge is None else edge[kept]
        self.of, self.graph, self.features, self.edge, self.asked, self.unit = of, graph, x, edge, rows, unit
        self.first_node = graph.sizes.cumsum(0) - graph.sizes
        self.pair = pair_features(graph, rows) if of == "links" else None

    def given(self, rows: np.ndarray) -> Any:
        """What a model is given for some examples."""
        asked = self.asked[rows]
        if self.of != "graphs":
            pair = None if self.pair is None else self.pair[torch.as_tensor(rows)]
            return GraphInput(self.graph, self.features, self.edge, torch.as_tensor(asked), pair)
        return self.joined(torch.as_tensor(asked))

    def joined(self, graphs: Tensor) -> GraphInput:
        """Some of the graphs as one batch."""
        sizes, first = self.graph.sizes[graphs], self.first_node[graphs]
        nodes = ranges(first, sizes)
        place = torch.full((self.graph.nodes,), -1, dtype=torch.long)
        place[nodes] = torch.arange(len(nodes))
        # Edges are sorted by target, and the nodes of a graph lie side by side: so do its edges.
        start = self.graph.pattern.start
        edges = ranges(start[first], start[first + sizes] - start[first])
        edges = edges if self.graph.in_order else self.graph.order[edges]
        weight = None if self.graph.weight is None else self.graph.weight[edges]
        member = torch.repeat_interleave(torch.arange(len(graphs)), sizes)
        graph = Graph(place[self.graph.edges[:, edges]], len(nodes), weight=weight, member=member, graphs=len(graphs))
        x = self.features.dense()[nodes] if isinstance(self.features, SparseRows) else self.features[nodes]
        return GraphInput(graph, x, None if self.edge is None else self.edge[edges])

    def step_input(self, rows: np.ndarray) -> Any:
        """What a model is given to learn from."""
        if self.of == "graphs":
            return self.given(rows)
        if self.of == "nodes":
            return GraphInput(self.learned, self.features, self.learned_edge, torch.as_tensor(self.asked[rows]))
        pairs = self.asked[rows]
        n = self.graph.nodes
        asked = torch.as_tensor(np.concatenate([pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]]))
        source, target = self.graph.edges
        keep = ~torch.isin(source * n + target, asked)
        edge = None if self.edge is None else self.edge[keep]
        assert self.pair is not None
        return GraphInput(
            self.graph.keep(keep), self.features, edge, torch.as_tensor(pairs), self.pair[torch.as_tensor(rows)]
        )

    def part_input(self, part: Part, rows: np.ndarray, place: Tensor) -> GraphInput:
        """What a model is given of a part of the graph, in which the examples `rows` have these places."""
        graph = part.graph
        edge = None if self.learned_edge is None else self.learned_edge[part.edges]
        pair = None
        if self.pair is not None:
            pair = self.pair[torch.as_tensor(rows)]
            n = graph.nodes
            asked = torch.cat([place[:, 0] * n + place[:, 1], place[:, 1] * n + place[:, 0]])
            kept = (~torch.isin(graph.edges[0] * n + graph.edges[1], asked)).nonzero()[:, 0]
            graph, edge = graph.keep(kept), None if edge is None else edge[kept]
        return GraphInput(graph, part.rows(self.features), edge, place, pair)

    def shuffled(
        self,
        part: Any,
        *,
        size: int,
        seed: int,
        rows: Sequence[np.ndarray] | None = None,
        augment: Any = None,
        workers: int = 0,
    ) -> Any:
        assert self.targets is not None
        return FORMS[self.batches](self, np.asarray(part), size, seed)

    def in_order(self, part: Any, *, size: int = CHUNK, most: int | None = None) -> Iterator[Batch]:
        part = np.asarray(part)[:most]
        size = size if self.of == "graphs" else max(size, len(part))  # one pass over the graph answers for all
        return (self.take(part[first : first + size]) for first in range(0, len(part), size))

    def first(self, part: Any, count: int = 1) -> Batch:
        return self.take(np.asarray(part)[:count])
