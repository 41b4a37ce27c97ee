"""Encoded graphs, given out as batches: all training nodes of a graph at once, some pairs, or some graphs joined into one."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, mix, permutation
from wonderland.core.batch import Batch
from wonderland.core.graph import Graph
from wonderland.core.graph_input import GraphInput
from wonderland.core.pattern import SparseRows
from wonderland.data.examples import CHUNK, RowExamples

ENTRIES = 1 << 24  # numbers in a block of rows of the adjacency matrix


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
    ):
        super().__init__(self.given, y, len(rows))
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
        if self.of != "links":
            return self.given(rows)
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
        return GraphBatches(self, np.asarray(part), size, seed)

    def in_order(self, part: Any, *, size: int = CHUNK, most: int | None = None) -> Iterator[Batch]:
        part = np.asarray(part)[:most]
        size = size if self.of == "graphs" else max(size, len(part))  # one pass over the graph answers for all
        return (self.take(part[first : first + size]) for first in range(0, len(part), size))

    def first(self, part: Any, count: int = 1) -> Batch:
        return self.take(np.asarray(part)[:count])


class GraphBatches:
    """Batches as a function of (epoch, position): a permutation of the examples seeded by (seed, epoch), cut into pieces."""

    members = 0

    def __init__(self, examples: GraphExamples, rows: np.ndarray, size: int, seed: int):
        if not len(rows) or size < 1:
            raise WonderlandError(
                f"Batches of {size} from {len(rows)} examples cannot be made: there must be at least one of each."
            )
        self.examples, self.rows, self.seed = examples, rows, seed
        self.size = min(size, len(rows))
        self.per_epoch = len(rows) // self.size

    def indices(self, epoch: int, position: int) -> np.ndarray:
        """The examples of one batch."""
        if self.size == len(self.rows):
            return self.rows
        order = permutation(mix(self.seed, 0), epoch, len(self.rows))
        return self.rows[order[position * self.size : (position + 1) * self.size]]

    def batch(self, epoch: int, position: int) -> Batch:
        """The batch at one place of one epoch."""
        rows = self.indices(epoch, position)
        assert self.examples.targets is not None
        return Batch({"x": self.examples.step_input(rows), "y": self.examples.targets[torch.as_tensor(rows)]})

    def stream(self, first: int, stop: int) -> Generator[Batch, None, None]:
        """Batches of steps `first` to `stop - 1`; one that is the same each time is made once."""
        whole = self.batch(0, 0) if self.size == len(self.rows) and self.examples.of != "links" else None
        for step in range(first, stop):
            yield whole if whole is not None else self.batch(*divmod(step, self.per_epoch))


def ranges(first: Tensor, count: Tensor) -> Tensor:
    """first[0] .. first[0] + count[0] - 1, then those of the next, ...

    >>> ranges(torch.tensor([5, 0]), torch.tensor([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    total = int(count.sum())
    start = torch.repeat_interleave(first - (count.cumsum(0) - count), count)
    return start + torch.arange(total)


def pair_features(graph: Graph, pairs: np.ndarray) -> Tensor:
    r"""What the neighbourhoods of two nodes say of their link: (pairs, 5).

    Common neighbours, :math:`\sum 1 / \log d` over them (Adamic-Adar), :math:`\sum 1 / d` (resource allocation), the share of common
    neighbours among all (Jaccard), and the logarithm of the product of degrees. The pair's own edge does not count.
    """
    undirected = Graph.undirected(graph.edges, graph.nodes).without_duplicates().without_loops()
    pattern = undirected.pattern
    degree = pattern.count.float()
    made = torch.zeros(len(pairs), 5)
    block = max(1, ENTRIES // max(1, graph.nodes))
    linked = set((undirected.edges[0] * graph.nodes + undirected.edges[1]).tolist())
    own = torch.tensor([float(a * graph.nodes + b in linked) for a, b in pairs.tolist()])
    for first in range(0, len(pairs), block):
        piece = torch.as_tensor(pairs[first : first + block])
        rows = [_rows(pattern, piece[:, side]) for side in (0, 1)]
        common = rows[0] * rows[1]
        gone = own[first : first + block]
        da, db = degree[piece[:, 0]] - gone, degree[piece[:, 1]] - gone
        count = common.sum(1)
        weights = torch.stack([1 / degree.clamp(min=2).log(), 1 / degree.clamp(min=1)], 1)
        both = common @ weights
        union = (da + db - count).clamp(min=1)
        made[first : first + block] = torch.stack(
            [count.log1p(), both[:, 0], both[:, 1], count / union, (da + 1).log() + (db + 1).log()], 1
        )
    return made


def _rows(pattern: Any, nodes: Tensor) -> Tensor:
    """Rows of the adjacency matrix as zeros and ones (b, n)."""
    made = torch.zeros(len(nodes), pattern.columns)
    count = pattern.count[nodes]
    places = ranges(pattern.start[nodes], count)
    made[torch.repeat_interleave(torch.arange(len(nodes)), count), pattern.column[places]] = 1.0
    return made
