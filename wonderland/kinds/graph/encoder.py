"""GraphEncoder: columns as numbers, structure as numbers where there are no columns, and the graph that was learned from."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.pattern import Pattern, SparseRows
from wonderland.data.dataset import TASKS, Finding, counted
from wonderland.data.encoder import Encoder, Field
from wonderland.data.ports import Preprocessing, Trial
from wonderland.kinds.graph.examples import GraphExamples
from wonderland.kinds.graph.features import Columns, beside, sparse_counts
from wonderland.kinds.graph.graphs import Graphs
from wonderland.kinds.graph.links import PAIR_FEATURES
from wonderland.kinds.graph.options import BATCHES, Options
from wonderland.kinds.graph.program import GraphProgram, graph_trials
from wonderland.kinds.graph.reading import read_tables
from wonderland.kinds.graph.tables import Tables, node_ids, positions
from wonderland.nn.graph.encodings import random_walk_encoding

WALKS = 8
LARGEST_WALK = 400  # nodes of a graph, for encodings that need a dense matrix of it
DEGREES = 16
MOST_IDENTITY = 50_000
MOST_STORED = 1 << 30
WHOLE = 3_000_000  # edges, both directions counted, up to which a step sees the whole graph


@dataclass
class GraphEncoder(Encoder):
    """What was learned of the columns of nodes and edges, and, for nodes and links, the graph itself.

    `identity` gives each stored node a feature of its own, where nodes have no columns. `structure` adds degrees and random-walk
    return probabilities. `stored` is the graph that predictions are about when no new data are given: with links, without the edges
    that were held out.
    """

    of: str
    nodes: Columns
    edges: Columns
    target: str | None
    classes: list[str] | None
    task: str | None
    directed: bool
    array: int = 0
    array_counts: bool = False
    identity: int = 0
    structure: bool = False
    split: str | None = None
    smiles: str | None = None
    batches: str = "whole"
    stored: dict[str, Tensor] = field(default_factory=dict, repr=False, compare=False)
    noticed: list[Finding] = field(default_factory=list, compare=False)

    kind = "graph"

    @staticmethod
    def fit(dataset: Graphs, parts: Any) -> "GraphEncoder":
        """Learn from the training part: its nodes, the ends of its pairs, or the nodes of its graphs."""
        rows = dataset.rows[parts.train]
        if dataset.of == "graphs":
            inside = np.isin(dataset.graph.node_graph.numpy(), rows)
            nodes = np.flatnonzero(inside)
        else:
            nodes = np.unique(rows)
        message = messages(dataset, parts)
        array, counts = 0, False
        if dataset.features is not None:
            array = dataset.features.shape[1]
            counts = bool((dataset.features >= 0).all() and (dataset.features != 0).mean() <= 0.1 and array >= 24)
        columns = Columns.fit(dataset.node_frame, nodes, "nodes")
        used = np.unique(dataset.edge_row[np.isin(dataset.graph.edges[1].numpy(), nodes)])
        edges = Columns.fit(dataset.edge_frame, used, "edges")
        bare = not columns.width and not array
        alone = dataset.of != "graphs"
        encoder = GraphEncoder(
            dataset.of,
            columns,
            edges,
            dataset.target,
            dataset.classes,
            dataset.task,
            dataset.directed,
            array,
            counts,
            identity=len(dataset.ids) if bare and alone and len(dataset.ids) <= MOST_IDENTITY else 0,
            structure=bare or dataset.of == "graphs",
            split=dataset.split_column,
            smiles=dataset.tables.smiles,
        )
        encoder.noticed = [*columns.noticed, *edges.noticed]
        dataset.findings += [finding for finding in encoder.noticed if finding not in dataset.findings]
        if alone:
            encoder.stored = encoder._kept(dataset, message)
            encoder.batches = dataset.options.batches or (
                "whole" if dataset.graph.edges.shape[1] <= WHOLE else "neighbours"
            )
        elif dataset.options.batches is not None:
            raise WonderlandError(
                "batches (--batches) cuts one large graph; whole graphs are joined into batches by themselves."
            )
        if dataset.options.inductive:
            encoder.stored["hidden"] = held_nodes(dataset, parts)
        return encoder

    @property
    def keeps_graph(self) -> bool:
        """Whether the graph that was learned from is kept."""
        return "ids" in self.stored

    # Numbers

    @property
    def features(self) -> int:
        """How many numbers describe a node."""
        return self.nodes.width + self.array + self.identity + (DEGREES + WALKS + 2 if self.structure else 0)

    def node_features(self, dataset: Graphs, graph: Graph) -> Tensor | SparseRows:
        """The features of all nodes (n, features)."""
        x: Tensor | SparseRows = self.nodes.encode(
            dataset.node_frame if self.nodes.names else None, graph.nodes, "nodes"
        )
        if self.array:
            given = dataset.features
            if given is None or given.shape[1] != self.array:
                raise WonderlandError(f"This model was trained with {self.array} features of each node.")
            x = beside(
                x, sparse_counts(np.nan_to_num(given)) if self.array_counts else torch.from_numpy(np.nan_to_num(given))
            )
        if self.identity:
            known = {node: i for i, node in enumerate(self.stored_ids())} if self.keeps_graph else None
            place = np.array([(i if known is None else known.get(node, -1)) for i, node in enumerate(dataset.ids)])
            row = torch.from_numpy(np.flatnonzero(place >= 0))
            pattern, _ = Pattern.of(row, torch.from_numpy(place[place >= 0]), graph.nodes, self.identity)
            x = beside(x, SparseRows(pattern, torch.ones(len(row))))
        return beside(x, structure(graph)) if self.structure else x

    def edge_features(self, dataset: Graphs, kept: np.ndarray | None = None) -> Tensor | None:
        """The features of all edges (m, e), None where there are none."""
        if not self.edges.width:
            return None
        rows = dataset.edge_row if kept is None else dataset.edge_row[kept]
        features = self.edges.encode(dataset.edge_frame.iloc[rows].reset_index(drop=True), len(rows), "edges")
        return features if isinstance(features, Tensor) else features.dense()

    def examples(self, dataset: Any) -> GraphExamples:
        """A dataset as the model sees it."""
        if not isinstance(dataset, Graphs):
            raise WonderlandError(f"This model reads graphs, and {dataset.name} is none.")
        self.noticed = []
        stored = getattr(dataset, "message", None)
        if stored is not None:
            graph, x, edge = stored
        else:
            graph = dataset.graph
            x, edge = self.node_features(dataset, graph), self.edge_features(dataset)
            if self.of == "links" and self.keeps_graph and dataset.ids == self.stored_ids():
                graph, x, edge = self._messages()
            self.noticed = [*self.nodes.noticed, *self.edges.noticed]
        hidden = self.stored.get("hidden")
        if hidden is not None and self.keeps_graph and dataset.ids != self.stored_ids():
            hidden = None  # another graph than that of the training
        return GraphExamples(
            self.of, graph, x, edge, dataset.rows, dataset.y, self.of[:-1], batches=self.batches, hidden=hidden
        )

    # The stored graph

    def _kept(self, dataset: Graphs, message: np.ndarray) -> dict[str, Tensor]:
        """Everything that predictions on the graph need, as tensors."""
        graph = dataset.graph.keep(torch.from_numpy(np.flatnonzero(message)))
        x, edge = self.node_features(dataset, graph), self.edge_features(dataset, message)
        text = "\0".join(dataset.ids).encode()
        kept = {
            "ids": torch.frombuffer(bytearray(text), dtype=torch.uint8),
            "edges": graph.edges,
            "rows": torch.from_numpy(dataset.rows),
        }
        if isinstance(x, SparseRows):
            kept |= {"x.start": x.pattern.start, "x.column": x.pattern.column, "x.value": x.value}
        else:
            kept |= {"x": x}
        kept |= {} if edge is None else {"edge": edge}
        kept |= {} if graph.weight is None else {"weight": graph.weight}
        return kept if sum(each.numel() * each.element_size() for each in kept.values()) <= MOST_STORED else {}

    def stored_ids(self) -> list[str]:
        """The ids of the stored nodes."""
        return bytes(self.stored["ids"].numpy()).decode("utf-8").split("\0")

    def _messages(self) -> tuple[Graph, Tensor | SparseRows, Tensor | None]:
        """The stored graph, features and edge features."""
        kept = self.stored
        nodes = len(self.stored_ids())
        if "x" in kept:
            x: Tensor | SparseRows = kept["x"]
        else:
            x = SparseRows(Pattern(kept["x.start"], kept["x.column"], self.features), kept["x.value"])
        return Graph(kept["edges"], nodes, weight=kept.get("weight")), x, kept.get("edge")

    def open_stored(self) -> Graphs:
        """The graph that was learned from: all its nodes, or the pairs of the training data."""
        if not self.keeps_graph:
            raise WonderlandError(
                "This run keeps no graph, so there is nothing to predict without new data: name a folder or a file."
            )
        graph, x, edge = self._messages()
        ids = self.stored_ids()
        stored = Graphs.__new__(Graphs)
        stored.name, stored.origin, stored.options, stored.findings = (
            "the stored graph",
            {"memory": "graph"},
            Options(),
            [],
        )
        stored.of, stored.noun, stored.ids, stored.graph, stored.member, stored.graph_ids = (
            self.of,
            self.of,
            ids,
            graph,
            None,
            [],
        )
        stored.place, stored.target, stored.directed = (
            {node: i for i, node in enumerate(ids)},
            self.target,
            self.directed,
        )
        stored.rows = self.stored["rows"].numpy() if self.of == "links" else np.arange(len(ids))
        stored.y, stored.classes, stored.task, stored.features = None, self.classes, self.task, None
        stored.pairs, stored.fingerprint = graph.edges.numpy(), ""
        stored.node_frame = stored.edge_frame = pd.DataFrame(index=range(len(ids)))
        stored.message = (graph, x, edge)  # type: ignore[attr-defined]
        return stored

    def open(self, source: Any, *, need_target: bool = False) -> Graphs:
        """New data: a graph of its own, new nodes joined to the stored graph, pairs of stored nodes, or new graphs."""
        if isinstance(source, Graphs):
            return source
        tables = self._tables(source)
        if self.of == "links" and self.keeps_graph and not need_target:
            return self._pairs(tables)
        if self.of == "nodes" and self.keeps_graph and tables.nodes is not None:
            named = set(tables.nodes["id"])
            ends = set(node_ids(tables.edges))
            if (ends - named) & set(self.stored_ids()):
                return self._joined(tables, need_target)
        return self._own(tables, need_target)

    def _tables(self, source: Any) -> Tables:
        """The tables of new data: of molecules where the model learned from them, else of what it is."""
        if not isinstance(source, pd.DataFrame) or self.smiles is not None:
            return read_tables(source, self.smiles)
        if self.of == "links":
            return Tables(None, source)
        empty = pd.DataFrame({"source": [], "target": []}, dtype=object)
        return Tables(source, empty)

    def _own(self, tables: Tables, need_target: bool) -> Graphs:
        options = Options(target=self.target, directed=self.directed, split=None)
        frame = {"nodes": tables.nodes, "graphs": tables.graphs, "links": tables.edges}[self.of]
        there = frame is not None and self.target in frame if self.target else self.of == "links"
        if need_target and not there:
            raise WonderlandError(f"{tables.name} has no column {self.target!r} to compare with.")
        dataset = Graphs(
            tables, options if there else Options(directed=self.directed), of=self.of, need_target=need_target and there
        )
        dataset.assigned = None
        if not need_target and self.of != "links":
            return self.all_rows(dataset)
        if self.of == "links" and not (self.keeps_graph and dataset.ids == self.stored_ids()):
            self._hide(dataset)
        return self._recoded(dataset)

    @staticmethod
    def _hide(dataset: Graphs) -> None:
        """Of a graph that was not learned from, every fifth pair is asked about, and is no message."""
        dataset.rows, dataset.y = dataset.rows[::5], None if dataset.y is None else dataset.y[::5]
        n, (source, target) = len(dataset.ids), dataset.graph.edges.numpy()
        asked = np.concatenate(
            [dataset.rows[:, 0] * n + dataset.rows[:, 1], dataset.rows[:, 1] * n + dataset.rows[:, 0]]
        )
        keep = ~np.isin(source * n + target, asked)
        dataset.graph, dataset.edge_row = (
            dataset.graph.keep(torch.from_numpy(np.flatnonzero(keep))),
            dataset.edge_row[keep],
        )

    def all_rows(self, dataset: Graphs) -> Graphs:
        """Every node or graph, known or not."""
        dataset.rows = np.arange(len(dataset.ids) if self.of == "nodes" else len(dataset.graph_ids))
        dataset.y, dataset.findings = None, [f for f in dataset.findings if f.subject != self.target]
        gone = [name for name in (self.target, self.split) if name and name in dataset.node_frame]
        if self.of == "nodes" and gone:
            dataset.node_frame = dataset.node_frame.drop(columns=gone)
        return dataset

    def _recoded(self, dataset: Graphs) -> Graphs:
        """Class codes as they were in training."""
        if dataset.y is None:
            return dataset
        if self.classes is None:
            if dataset.classes is not None:
                try:
                    values = np.array([float(name) for name in dataset.classes])
                except ValueError:
                    raise WonderlandError(f"This model predicts numbers, and {self.target!r} holds words.") from None
                dataset.y, dataset.classes, dataset.task = values[dataset.y], None, self.task
            return dataset
        names = dataset.classes if dataset.classes is not None else [f"{v:g}" for v in np.unique(dataset.y)]
        codes = dataset.y if dataset.classes is not None else np.unique(dataset.y, return_inverse=True)[1]
        for name in names:
            if name not in self.classes:
                raise WonderlandError(f"{dataset.name} has the class {name!r}, which this model does not know.")
        dataset.y = np.array([self.classes.index(name) for name in names], np.int64)[codes]
        dataset.classes, dataset.task = self.classes, self.task
        return dataset

    def _joined(self, tables: Tables, need_target: bool) -> Graphs:
        """New nodes with edges to stored ones: the answers are for the new nodes."""
        assert tables.nodes is not None
        old, ids = self.stored_ids(), tables.nodes["id"].tolist()
        known = {node: i for i, node in enumerate(old)}
        fresh = [node for node in ids if node not in known]
        if not fresh:
            raise WonderlandError(
                "The new nodes are all in the stored graph already: leave the data out to predict for it."
            )
        keep = tables.nodes["id"].isin(fresh).to_numpy()
        nodes = tables.nodes[keep].reset_index(drop=True)
        small = Tables(
            nodes, tables.edges.iloc[:0], features=None if tables.features is None else tables.features[keep]
        )
        dataset = self._own(small, need_target)
        dataset.findings = []
        x_new = self.node_features(dataset, dataset.graph)
        graph, x, edge = self._messages()
        place = known | {node: len(old) + i for i, node in enumerate(dataset.ids)}
        source, target = (positions(tables.edges[end], place) for end in ("source", "target"))
        kept = np.flatnonzero((source >= 0) & (target >= 0))
        if lost := len(source) - len(kept):
            text = f"{counted(lost, 'edge names a node', 'edges name nodes')} that neither graph has, and {'is' if lost == 1 else 'are'} left out."
            dataset.findings.append(Finding("dangling", "edges", lost, text))
        new = torch.from_numpy(np.stack([source[kept], target[kept]]))
        row = np.arange(len(kept))
        if not self.directed:
            once = (new[0] != new[1]).nonzero()[:, 0]
            new, row = torch.cat([new, new.flip(0)[:, once]], 1), np.concatenate([row, row[once.numpy()]])
        frame = tables.edges.iloc[kept].reset_index(drop=True)
        weight = None if graph.weight is None else torch.cat([graph.weight, new_weights(frame, tables.name)[row]])
        whole = Graph(torch.cat([graph.edges, new], 1), len(old) + len(dataset.ids), weight=weight)
        rows = (
            (x.dense() if isinstance(x, SparseRows) else x),
            (x_new.dense() if isinstance(x_new, SparseRows) else x_new),
        )
        edges = None
        if edge is not None:
            features = self.edges.encode(frame, len(frame), "edges")
            edges = torch.cat([edge, (features if isinstance(features, Tensor) else features.dense())[row]])
        dataset.message = (whole, torch.cat(rows), edges)  # type: ignore[attr-defined]
        dataset.rows = dataset.rows + len(old)
        dataset.ids = [*old, *dataset.ids]
        return dataset

    def _pairs(self, tables: Tables) -> Graphs:
        """Pairs of stored nodes, one for each line of edges."""
        dataset = self.open_stored()
        ends = [positions(tables.edges[end], dataset.place) for end in ("source", "target")]
        for place, end in zip(ends, ("source", "target"), strict=True):
            if (place < 0).any():
                node = tables.edges[end].iloc[int(np.flatnonzero(place < 0)[0])]
                raise WonderlandError(
                    f"The graph of this run has no node {node!r}: a pair is asked of nodes that were there."
                )
        dataset.rows = np.stack(ends, 1)
        dataset.name = tables.name
        return dataset

    # The contract of an encoder

    def schema(self) -> list[Field]:
        if self.smiles is not None:
            return [Field(self.smiles, "text")]
        if self.of == "links":
            return [Field("source", "text"), Field("target", "text")]
        columns = [
            Field(name, "number")
            if about["kind"] == "number"
            else Field(name, "category", levels=tuple(about["levels"]))
            for name, about in zip(self.nodes.names, self.nodes.about, strict=True)
        ]
        return [Field("id", "text"), *columns]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Nodes, pairs or molecules as a table; a graph of many nodes is no row."""
        if self.of == "graphs" and self.smiles is None:
            raise WonderlandError(
                "This model answers for whole graphs, which are tables of nodes and edges and no rows of fields: wonderland predict reads their folder."
            )
        return super().collect(rows)

    trial_words = "the stored graph and new ones of several sizes, all rows at once and in pieces"

    @property
    def weighted(self) -> bool:
        """Whether the edges of the stored graph have weights."""
        return "weight" in self.stored

    pair_width = PAIR_FEATURES

    def module(self, *, double: bool = False) -> Preprocessing | str:
        edges = self.stored.get("edges")
        if edges is not None and bool((edges[0] == edges[1]).any()):
            return "Its graph has edges from a node to itself, which exported programs do not tell from those that layers add."
        return GraphProgram(self, self.weighted)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return graph_trials(self, self.weighted)

    def beside(self) -> dict[str, bytes]:
        """The stored graph as inputs of the exported model, and the names of its nodes."""
        if not self.keeps_graph:
            return {}
        graph, x, edge = self._messages()
        tensors = {
            "nodes": x.dense() if isinstance(x, SparseRows) else x,
            "edges": graph.edges,
            "rows": self.stored["rows"],
        }
        tensors |= {} if edge is None else {"edge_features": edge}
        tensors |= {} if graph.weight is None else {"weights": graph.weight}
        return {
            "graph.safetensors": save({name: value.contiguous() for name, value in tensors.items()}),
            "nodes.json": json.dumps(self.stored_ids(), ensure_ascii=False).encode("utf-8", "surrogatepass"),
        }

    def arguments(self) -> dict[str, Any]:
        return {"features": self.features, "edge_dim": self.edges.width}

    def describe(self) -> str:
        return f"A node is described by {self.features:,} numbers. "

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "of": self.of, "nodes": self.nodes.to_json(), "edges": self.edges.to_json(), "target": self.target,
            "classes": self.classes, "task": self.task, "directed": self.directed, "array": self.array,
            "array_counts": self.array_counts, "identity": self.identity, "structure": self.structure, "split": self.split,
            "smiles": self.smiles, "batches": self.batches,
        }  # fmt: skip

    def tensors(self) -> dict[str, Tensor]:
        return self.stored

    @staticmethod
    def from_json(value: Any, tensors: dict[str, Tensor]) -> "GraphEncoder":
        """Back from `to_json` and `tensors`; content that cannot be right is refused."""
        if not isinstance(value, dict) or value.get("kind") != "graph":
            raise WonderlandError("The preprocessing of this model is not for graphs: the file is damaged or not ours.")
        checks = {
            "of": lambda v: v in ("nodes", "links", "graphs"),
            "target": lambda v: v is None or isinstance(v, str),
            "split": lambda v: v is None or isinstance(v, str),
            "batches": lambda v: v in BATCHES,
            "smiles": lambda v: v is None or isinstance(v, str),
            "classes": lambda v: (
                v is None or (isinstance(v, list) and 2 <= len(v) <= 100_000 and all(isinstance(c, str) for c in v))
            ),
            "task": lambda v: v in TASKS,
            "directed": lambda v: isinstance(v, bool),
            "array": lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= 1_000_000,
            "array_counts": lambda v: isinstance(v, bool),
            "identity": lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= MOST_IDENTITY,
            "structure": lambda v: isinstance(v, bool),
        }
        value = {"smiles": None, "batches": "whole", **value}  # not in runs of earlier versions
        for name, check in checks.items():
            if name not in value or not check(value[name]):
                shown = json.dumps(value.get(name), default=str)[:60]
                raise WonderlandError(
                    f"The preprocessing of this model has {name} = {shown}, which cannot be: the file is damaged or not ours."
                )
        encoder = GraphEncoder(
            nodes=Columns.from_json(value.get("nodes")), edges=Columns.from_json(value.get("edges")),
            **{name: value[name] for name in checks},
        )  # fmt: skip
        encoder.stored = tensors
        if encoder.keeps_graph:
            try:
                encoder.stored_ids()
                graph, x, _ = encoder._messages()
                rows = tensors["rows"]
                fine = x.shape == (graph.nodes, encoder.features) and (
                    not len(rows) or (int(rows.min()) >= 0 and int(rows.max()) < graph.nodes)
                )
                if isinstance(x, SparseRows) and len(x.pattern):
                    start, column = x.pattern.start, x.pattern.column
                    fine &= int(start[0]) == 0 and int(start[-1]) == len(column) and bool((start.diff() >= 0).all())
                    fine &= int(column.min()) >= 0 and int(column.max()) < encoder.features
                hidden = tensors.get("hidden")
                fine &= (
                    hidden is None or not len(hidden) or (int(hidden.min()) >= 0 and int(hidden.max()) < graph.nodes)
                )
                if not fine:
                    raise ValueError
            except (KeyError, ValueError, TypeError, IndexError, RuntimeError, UnicodeDecodeError) as error:
                raise WonderlandError(
                    "The stored graph does not fit the preprocessing: one of them is damaged."
                ) from error
        elif encoder.of != "graphs" and encoder.identity:
            raise WonderlandError("The graph of this run is missing: preprocess.safetensors is damaged.")
        return encoder


def new_weights(frame: Any, name: str) -> Tensor:
    """The weights of new edges, 1 where the new data have none."""
    if "weight" not in frame:
        return torch.ones(len(frame))
    values: Any = pd.to_numeric(frame["weight"], errors="coerce")
    weight = values.to_numpy(np.float64, na_value=np.nan)
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise WonderlandError(
            f"A weight of an edge of {name} is missing, negative or infinite, where those of the training were not."
        )
    return torch.tensor(weight, dtype=torch.float32)


def structure(graph: Graph) -> Tensor:
    """What is known of a node without columns: 1, its degree (as a logarithm and one-hot), and how soon random walks return."""
    degree = torch.bincount(graph.edges[1], minlength=graph.nodes)
    one_hot = torch.nn.functional.one_hot(degree.clamp(max=DEGREES - 1), DEGREES).float()
    small = graph.nodes and int(graph.sizes.max()) <= LARGEST_WALK
    walks = random_walk_encoding(graph, WALKS) if small else torch.zeros(graph.nodes, WALKS)
    return torch.cat([torch.ones(graph.nodes, 1), degree.float().log1p()[:, None], one_hot, walks], 1)


def held_nodes(dataset: Graphs, parts: Any) -> Tensor:
    """The nodes of the validation, calibration and test parts."""
    if dataset.of != "nodes":
        raise WonderlandError(
            f"inductive (--inductive) hides held-out nodes; here {dataset.of} are predicted, so leave it out."
        )
    held = np.concatenate([parts.parts[name] for name in ("validation", "calibration", "test")])
    return torch.from_numpy(np.sort(dataset.rows[held]))


def messages(dataset: Graphs, parts: Any) -> np.ndarray:
    """Which edges of the graph are messages (m,): all of them, or, where links are learned, those of the training part."""
    edges = dataset.graph.edges.numpy()
    if dataset.of != "links":
        return np.ones(edges.shape[1], bool)
    held = np.concatenate([parts.parts[name] for name in ("validation", "calibration", "test")])
    pairs, n = dataset.rows[held], len(dataset.ids)
    hidden = np.concatenate(
        [pairs[:, 0] * n + pairs[:, 1], *([] if dataset.directed else [pairs[:, 1] * n + pairs[:, 0]])]
    )
    return ~np.isin(edges[0] * n + edges[1], hidden)
