"""Batches of a graph, each a function of (epoch, position): some examples with the whole graph, sampled neighbours, or clusters."""

from collections.abc import Generator
from typing import Any

import numpy as np
import torch

from wonderland.core import WonderlandError, mix, permutation
from wonderland.core.batch import Batch
from wonderland.nn.graph.sampling import clusters, induced, sample_neighbours

NEIGHBOURS = (15, 10)  # edges that are drawn for each node of the first hop and of the second
CLUSTER = 1000  # nodes of a cluster, about


class GraphBatches:
    """A permutation of the examples seeded by (seed, epoch), cut into pieces; every step sees the whole graph."""

    members = 0

    def __init__(self, examples: Any, rows: np.ndarray, size: int, seed: int):
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
        return self._batch(rows, self.given(rows, epoch, position))

    def given(self, rows: np.ndarray, epoch: int, position: int) -> Any:
        """What the model is given for these examples."""
        return self.examples.step_input(rows)

    def _batch(self, rows: np.ndarray, given: Any) -> Batch:
        assert self.examples.targets is not None
        return Batch({"x": given, "y": self.examples.targets[torch.as_tensor(rows)]})

    def stream(self, first: int, stop: int) -> Generator[Batch, None, None]:
        """Batches of steps `first` to `stop - 1`; one that is the same each time is made once."""
        same = type(self) is GraphBatches and self.size == len(self.rows) and self.examples.of != "links"
        whole = self.batch(0, 0) if same else None
        for step in range(first, stop):
            yield whole if whole is not None else self.batch(*divmod(step, self.per_epoch))


class NeighbourBatches(GraphBatches):
    """Each batch holds the sampled neighbourhood of its nodes, or of the ends of its pairs."""

    def given(self, rows: np.ndarray, epoch: int, position: int) -> Any:
        draw = torch.Generator().manual_seed(mix(self.seed, 1, epoch, position))
        asked = torch.as_tensor(self.examples.asked[rows])
        nodes, place = asked.unique(return_inverse=True)
        part = sample_neighbours(self.examples.learned, nodes, NEIGHBOURS, draw)
        return self.examples.part_input(part, rows, place)


class ClusterBatches(GraphBatches):
    """Each batch holds some clusters of nodes and the edges among them; the examples are the nodes in them."""

    def __init__(self, examples: Any, rows: np.ndarray, size: int, seed: int):
        super().__init__(examples, rows, size, seed)
        if examples.of != "nodes":
            raise WonderlandError(
                f"Batches of clusters are for nodes, not for {examples.of}: take neighbours, or whole."
            )
        graph = examples.learned
        count = max(1, graph.nodes // CLUSTER)
        label = graph.kept(("clusters", count), lambda: clusters(graph, count))
        self.members_of = torch.argsort(label, stable=True).split(torch.bincount(label, minlength=count).tolist())
        self.place = np.full(graph.nodes, -1, np.int64)
        self.place[examples.asked[rows]] = np.arange(len(rows))
        self.used = [nodes for nodes in self.members_of if (self.place[nodes.numpy()] >= 0).any()]
        self.joined = min(len(self.used), max(1, round(self.size * len(self.used) / len(rows))))
        self.per_epoch = len(self.used) // self.joined

    def batch(self, epoch: int, position: int) -> Batch:
        """The batch at one place of one epoch."""
        order = permutation(mix(self.seed, 0), epoch, len(self.used))[
            position * self.joined : (position + 1) * self.joined
        ]
        nodes = torch.cat([self.used[i] for i in order])
        place = self.place[nodes.numpy()]
        inside = np.flatnonzero(place >= 0)
        rows = self.rows[place[inside]]
        part = induced(self.examples.learned, nodes)
        return self._batch(rows, self.examples.part_input(part, rows, torch.from_numpy(inside)))


FORMS = {"whole": GraphBatches, "neighbours": NeighbourBatches, "clusters": ClusterBatches}
