"""GraphInput: what a model of graphs is given, and which nodes, pairs of nodes or graphs it is asked about."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from wonderland.core.errors import WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.pattern import SparseRows


@dataclass(frozen=True)
class GraphInput:
    """A graph with features of its nodes x (n, d) and of its edges (m, e), and the examples to answer for.

    `rows` are node numbers (b,) or pairs of them (b, 2); None asks about each graph of a batch. `pair` (b, k) are features of the
    pairs. Cutting it into pieces cuts the rows: every piece sees the whole graph.

    >>> import torch
    >>> given = GraphInput(Graph([(0, 1)]), torch.zeros(2, 3), rows=torch.tensor([1]))
    >>> len(given), given.x.shape
    (1, torch.Size([2, 3]))
    """

    graph: Graph
    x: Tensor | SparseRows
    edge: Tensor | None = None
    rows: Tensor | None = None
    pair: Tensor | None = None

    def __len__(self) -> int:
        return self.graph.graphs if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The examples and the features of a node."""
        return len(self), *self.x.shape[1:]

    @property
    def dtype(self) -> Any:
        """The type of the features."""
        return self.x.dtype

    def split(self, pieces: int) -> list["GraphInput"]:
        """So many pieces of the rows."""
        if self.rows is None:
            if pieces == 1:
                return [self]
            raise WonderlandError("A batch of graphs is not cut: take a smaller batch in place of accumulate.")
        rows = self.rows.tensor_split(pieces)
        pair = [None] * pieces if self.pair is None else self.pair.tensor_split(pieces)
        return [replace(self, rows=rows[i], pair=pair[i]) for i in range(pieces)]

    def to(self, device: Any) -> "GraphInput":
        """All of it on a device."""
        edge, rows, pair = (None if each is None else each.to(device) for each in (self.edge, self.rows, self.pair))
        return GraphInput(self.graph.to(device), self.x.to(device), edge, rows, pair)

    def tensors(self) -> Iterator[Tensor]:
        """The features as a tensor of this shape, for messages."""
        yield self.x.value if isinstance(self.x, SparseRows) else self.x
