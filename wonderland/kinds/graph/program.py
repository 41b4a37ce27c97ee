"""Graphs as inputs of an exported model: encoded nodes and edges of any number, and the nodes, pairs or graphs that are asked about."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core.graph import Graph
from wonderland.core.graph_input import GraphInput
from wonderland.core.pattern import SparseRows
from wonderland.data.ports import Feed, Port, Preprocessing, Trial
from wonderland.kinds.graph.examples import GraphExamples
from wonderland.kinds.graph.graphs import Graphs
from wonderland.kinds.graph.options import Options
from wonderland.kinds.graph.tables import Tables

MOST_ASKED = 500  # rows of the stored graph that an export is tried on
MOLECULES = ("C", "CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O", "[Na+].[Cl-]", "O", "C1CC1", "N#N", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "CCCCCCCCCCCCCCCC",
             "F", "OO", "C=C", "CC(C)(C)c1ccc(O)cc1", "[O-][N+](=O)c1ccccc1")  # fmt: skip


class Entries:
    """The entries of an adjacency matrix in the order of its edges: a `Pattern` that is not sorted, for sums by their row."""

    def __init__(self, edges: Tensor, nodes: int):
        self.column, self.row, self.rows, self.columns = edges[0], edges[1], nodes, nodes


class TracedGraph(Graph):
    """A graph inside an exported program, of any size. No edge begins where it ends."""

    @property
    def pattern(self) -> Any:
        return Entries(self.edges, self.nodes)

    def sorted_edges(self, values: Tensor) -> Tensor:
        return values

    def with_loops(self, weight: float = 1.0) -> "TracedGraph":
        loops = torch.arange(self.nodes, device=self.edges.device)
        weights = None
        if self.weight is not None or weight != 1.0:
            weights = torch.cat([self.value(), torch.full_like(loops, weight, dtype=torch.float32)])
        return traced(torch.cat([self.edges, loops.expand(2, -1)], 1), self.nodes, weights, self.member, self.graphs)

    def value(self, dtype: torch.dtype | None = None) -> Tensor:
        ones = torch.ones_like(self.edges[0], dtype=torch.float32) if self.weight is None else self.weight
        return ones if dtype is None else ones.to(dtype)

    def degree_with(self, loops: bool, dtype: torch.dtype) -> Tensor:
        graph = self.with_loops() if loops else self
        return torch.zeros(self.nodes, dtype=dtype, device=self.edges.device).scatter_add(
            0, graph.edges[1], graph.value(dtype)
        )

    @property
    def node_graph(self) -> Tensor:
        return torch.zeros(self.nodes, dtype=torch.int64) if self.member is None else self.member

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        return make()


def traced(edges: Tensor, nodes: int, weight: Tensor | None, member: Tensor | None, graphs: int) -> TracedGraph:
    """A graph from tensors that are not looked into."""
    graph = TracedGraph.__new__(TracedGraph)
    graph._hold(edges, nodes, weight, member, graphs)
    return graph


class GraphProgram(Preprocessing):
    """Nodes (nodes, features) and edges (2, edges), as the encoder has them, to a `GraphInput`."""

    def __init__(self, encoder: Any, weighted: bool):
        self.of, self.wide, self.weighted = encoder.of, encoder.edges.width, weighted
        ports = [
            Port("nodes", "float", ("nodes", encoder.features), about="encoded features of the nodes"),
            Port(
                "edges",
                "int64",
                (2, "edges"),
                about="sources above targets, both directions of an undirected edge, no node with itself",
            ),
        ]
        if weighted:
            ports.append(Port("weights", "float", ("edges",), about="the weight of each edge"))
        if self.wide:
            ports.append(Port("edge_features", "float", ("edges", self.wide), about="encoded features of the edges"))
        if self.of == "graphs":
            ports.append(Port("sizes", "int64", ("rows",), about="how many nodes each graph has, side by side"))
        elif self.of == "nodes":
            ports.append(Port("asked", "int64", ("rows",), about="the numbers of the nodes to answer for"))
        else:
            ports.append(Port("asked", "int64", ("rows", 2), about="pairs of node numbers to answer for"))
            ports.append(
                Port(
                    "pair_features",
                    "float",
                    ("rows", encoder.pair_width),
                    about="what the neighbourhoods of two nodes say",
                )
            )
        super().__init__(tuple(ports))

    def forward(self, *values: Tensor) -> GraphInput:
        given = iter(values)
        x, edges = next(given), next(given)
        weight = next(given) if self.weighted else None
        edge = next(given) if self.wide else None
        asked = next(given)
        nodes = x.shape[0]
        if self.of == "graphs":
            member = (torch.arange(nodes)[:, None] >= asked.cumsum(0)[None]).sum(1)
            return GraphInput(traced(edges, nodes, weight, member, asked.shape[0]), x, edge)
        pair = next(given) if self.of == "links" else None
        return GraphInput(traced(edges, nodes, weight, None, 1), x, edge, asked, pair)


def graph_feed(examples: GraphExamples, rows: np.ndarray, weighted: bool) -> Feed:
    """The arrays for some examples."""
    given = examples.given(rows)
    x = given.x.dense() if isinstance(given.x, SparseRows) else given.x
    feed = {"nodes": x.float().numpy(), "edges": given.graph.edges.numpy()}
    if weighted:
        feed["weights"] = given.graph.value().float().numpy()
    if given.edge is not None:
        feed["edge_features"] = given.edge.float().numpy()
    if examples.of == "graphs":
        return feed | {"sizes": given.graph.sizes.numpy()}
    feed["asked"] = given.rows.numpy()
    return feed if given.pair is None else feed | {"pair_features": given.pair.float().numpy()}


def graph_trials(encoder: Any, weighted: bool) -> Iterator[Trial]:
    """The stored graph, and graphs of other sizes: sparse and dense ones, nodes without edges, missing cells."""
    if encoder.keeps_graph:
        stored = encoder.open_stored()
        stored.rows = stored.rows[np.unique(np.linspace(0, len(stored.rows) - 1, MOST_ASKED).astype(int))]
        yield _trial(encoder, stored, weighted)
    if encoder.of != "links":
        yield from (
            _trial(encoder, odd_graphs(encoder, count, seed), weighted) for seed, count in enumerate((1, 7, 20))
        )


def _trial(encoder: Any, source: Any, weighted: bool) -> Trial:
    dataset = source if isinstance(source, Graphs) else encoder.open(source)
    examples = encoder.examples(dataset)
    count = len(dataset.rows)
    cuts = [(0, count)], [(0, 1), (1, min(8, count)), (min(8, count), count)]
    return Trial(dataset, [
        [graph_feed(examples, np.arange(a, b), weighted) for a, b in cut if b > a] for cut in cuts
    ])  # fmt: skip


def odd_graphs(encoder: Any, count: int, seed: int) -> Any:
    """New graphs, made from the columns that the encoder knows."""
    if encoder.smiles is not None:
        return pd.DataFrame({encoder.smiles: [MOLECULES[(seed + i) % len(MOLECULES)] for i in range(count)]})
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 12, count) if encoder.of == "graphs" else [3 * count + 2]
    nodes, edges, first = [], [], 0
    for number, size in enumerate(sizes):
        nodes += [{"id": f"new{first + i}", "graph": f"g{number}"} for i in range(size)]
        there = np.argwhere(np.triu(generator.random((size, size)) < (0.8 if number % 2 else 0.25), 1)) + first
        edges += [{"source": f"new{a}", "target": f"new{b}"} for a, b in there.tolist()]
        first += size
    if not edges:  # a table of edges has one at least
        nodes += [{"id": f"new{first + i}", "graph": "g0"} for i in range(2)]
        edges = [{"source": f"new{first}", "target": f"new{first + 1}"}]
    tables = pd.DataFrame(nodes), pd.DataFrame(edges)
    for frame, columns in zip(tables, (encoder.nodes, encoder.edges), strict=True):
        for name, about in zip(columns.names, columns.about, strict=True):
            frame[name] = _cells(about, len(frame), generator)
    features = generator.random((len(nodes), encoder.array)).astype(np.float32) if encoder.array else None
    if encoder.of != "graphs":
        return asked_of(encoder, Tables(tables[0].drop(columns="graph"), tables[1], features=features))
    graphs = pd.DataFrame({"id": [f"g{number}" for number in range(len(sizes))]})
    return asked_of(encoder, Tables(*tables, graphs, features=features))


def asked_of(encoder: Any, tables: Tables) -> Graphs:
    """New graphs as the encoder opens them: every node or graph is asked about."""
    dataset = Graphs(tables, Options(directed=encoder.directed), of=encoder.of, need_target=False)
    return encoder.all_rows(dataset)


def _cells(about: dict[str, Any], count: int, generator: np.random.Generator) -> Any:
    if about["kind"] == "number":
        values = about["mean"] + about["scale"] * generator.normal(size=count) * 10.0 ** generator.integers(
            -1, 3, count
        )
        return np.where(generator.random(count) < 0.1, np.nan, values)
    return generator.choice(np.array([*about["levels"], "unheard of", None], object), count)
