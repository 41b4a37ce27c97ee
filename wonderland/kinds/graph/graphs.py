"""Graphs: a dataset of nodes, links or whole graphs, made from tables."""

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import torch
from pandas.util import hash_pandas_object

from wonderland.core import WonderlandError, nearest
from wonderland.core.graph import Graph
from wonderland.data.columns import read_column
from wonderland.data.dataset import Dataset, Finding, counted, stop_if_strict
from wonderland.data.split import read_assigned
from wonderland.data.target import TARGET_NAMES, read_target
from wonderland.kinds.graph.links import missing_pairs
from wonderland.kinds.graph.options import Options
from wonderland.kinds.graph.tables import Tables, dangling, node_ids, positions

NOUNS = {"nodes": "nodes", "links": "pairs of nodes", "graphs": "graphs"}
LINK_CLASSES = ["no link", "link"]
SPLITS = ("split", "part", "set")


class Graphs(Dataset):
    """One graph, or many, and what is to be said of its nodes, of pairs of nodes, or of each graph.

    `graph` holds all nodes and edges; `of` is "nodes", "links" or "graphs". `rows` are the examples: node numbers (r,), pairs of
    them (r, 2), or graph numbers (r,). `node_frame` and `edge_frame` are the columns of features; `edge_row` says for each edge of
    the graph which row of `edge_frame` it comes from.
    """

    kind = "graph"

    def __init__(self, tables: Tables, options: Options, *, of: str | None = None, need_target: bool = True):
        self.name, self.origin, self.options, self.tables = tables.name, tables.origin, options, tables
        self.findings = list(tables.findings)
        self.of = of or options.of or self._infer(tables, options)
        self.noun = NOUNS[self.of]
        self._nodes(tables)
        self._edges(tables, options)
        self.target = self._target_column(tables, options, need_target)
        self._rows(tables, options, need_target)
        self.fingerprint = self._fingerprint()
        stop_if_strict(self.findings, options.strict)

    # What is predicted

    @staticmethod
    def _infer(tables: Tables, options: Options) -> str:
        named = options.target
        if named is not None:
            for of, frame in (("graphs", tables.graphs), ("nodes", tables.nodes), ("links", tables.edges)):
                if frame is not None and named in frame.columns:
                    return of
            return "nodes"
        of_node = tables.nodes is not None and _named_target(tables.nodes) is not None
        if tables.graphs is not None:
            return "nodes" if of_node and _named_target(tables.graphs) is None else "graphs"
        return "nodes" if of_node else "links"

    def _target_column(self, tables: Tables, options: Options, need: bool) -> str | None:
        frame = {"nodes": tables.nodes, "graphs": tables.graphs, "links": tables.edges}[self.of]
        if self.of == "graphs" and frame is None:
            raise WonderlandError(f"{self.name} has no graphs.csv, which says what is known of each graph.")
        columns = [] if frame is None else [str(name) for name in frame.columns]
        if options.target is not None:
            if options.target not in columns:
                if not need:
                    return None
                raise WonderlandError(
                    f"The {self.of} of {self.name} have no column {options.target!r}.{nearest(options.target, columns)}"
                )
            return options.target
        assert frame is not None or self.of != "graphs"
        chosen = None if frame is None else _named_target(frame, edges=self.of == "links")
        if chosen is None and self.of != "links":
            if not need:
                return None
            raise WonderlandError(
                f"The {self.of} of {self.name} have no column to learn: name one with target (--target)."
            )
        if self.of == "links" and chosen is None:
            for name in () if tables.nodes is None else tables.nodes.columns:
                if str(name).strip().casefold() in TARGET_NAMES:
                    text = f"Column {str(name)!r} of the nodes holds another text for each of them, so it is a name and no target."
                    self.findings.append(Finding("target", str(name), 1, text))
            text = "No column is to be learned, so links are: which pairs of nodes are joined by an edge."
            self.findings.append(Finding("target", "links", 1, text))
        elif options.target is None and chosen is not None:
            text = f"Column {chosen!r} of the {self.of} is taken as the target by its name."
            self.findings.append(Finding("target", chosen, 1, text))
        return chosen

    # Nodes and edges

    def _nodes(self, tables: Tables) -> None:
        if tables.nodes is None:
            frame: Any = pd.DataFrame({"id": node_ids(tables.edges)}, dtype=object)
        else:
            frame = tables.nodes
        if not len(frame):
            raise WonderlandError(f"{self.name} has no nodes.")
        member = None
        self.graph_ids: list[str] = []
        self.features = tables.features
        if tables.graphs is not None:
            known = {each: number for number, each in enumerate(tables.graphs["id"])}
            codes: Any = frame["graph"].map(known.get)
            if codes.isna().any():
                row = int(np.flatnonzero(codes.isna())[0])
                raise WonderlandError(
                    f"Node {frame['id'].iloc[row]!r} belongs to graph {frame['graph'].iloc[row]!r}, which graphs.csv does not have."
                )
            order = np.argsort(codes.to_numpy(np.int64), kind="stable")
            frame, member = frame.iloc[order].reset_index(drop=True), torch.from_numpy(codes.to_numpy(np.int64)[order])
            self.graph_ids = tables.graphs["id"].tolist()
            self.features = None if self.features is None else self.features[order]
        self.node_table, self.member = frame, member
        self.ids = frame["id"].tolist()
        self.place = {node: i for i, node in enumerate(self.ids)}

    def _edges(self, tables: Tables, options: Options) -> None:
        table = tables.edges
        source, target = (positions(table[end], self.place) for end in ("source", "target"))
        lost = (source < 0) | (target < 0)
        if lost.any():
            row = int(np.flatnonzero(lost)[0])
            example = table["target" if source[row] >= 0 else "source"].iloc[row]
            self.findings.append(dangling(int(lost.sum()), str(example), self.name))
        kept = np.flatnonzero(~lost)
        pairs = np.stack([source[kept], target[kept]])
        if self.member is not None and len(kept):
            across = self.member[pairs[0]] != self.member[pairs[1]]
            if bool(across.any()):
                row = int(np.flatnonzero(across.numpy())[0])
                raise WonderlandError(
                    f"An edge joins {self.ids[pairs[0][row]]!r} and {self.ids[pairs[1][row]]!r}, which are nodes of two graphs."
                )
        directed = options.directed or bool(tables.directed)
        self.directed = directed
        key = pairs if directed else np.sort(pairs, 0)
        _, first = np.unique(key[0] * len(self.ids) + key[1], return_index=True)
        first = np.sort(first)
        repeated = len(kept) - len(first)
        given = np.unique(pairs[0] * len(self.ids) + pairs[1])
        opposite = np.isin(pairs[1] * len(self.ids) + pairs[0], given)
        # Where every edge stands in both directions, the second is no repetition.
        mirrored = not directed and repeated > len(kept) - len(given) and bool(opposite.all())
        repeated = len(kept) - len(given) if mirrored else repeated
        if repeated:
            text = f"{counted(repeated, 'edge repeats', 'edges repeat')} another one and {'counts' if repeated == 1 else 'count'} once."
            self.findings.append(Finding("repeated", "edges", repeated, text))
        self.pairs, rows = pairs[:, first], kept[first]
        loops = self.pairs[0] == self.pairs[1]
        weight = self._weight(table, rows)
        self.edge_frame = table.drop(columns=["source", "target", *(["weight"] if weight is not None else [])])
        if directed:
            edges, self.edge_row = self.pairs, rows
        else:
            edges = np.concatenate([self.pairs, self.pairs[::-1][:, ~loops]], 1)
            self.edge_row = np.concatenate([rows, rows[~loops]])
            weight = None if weight is None else np.concatenate([weight, weight[~loops]])
            if len(kept) and tables.directed is None and not mirrored:
                text = "Edges count in both directions; --directed lets them go from source to target only."
                self.findings.append(Finding("extra", "edges", len(kept), text))
        order = np.lexsort((edges[0], edges[1]))  # sorted once, so that no layer has to
        edges, self.edge_row = np.ascontiguousarray(edges[:, order]), self.edge_row[order]
        self.pair_rows = rows
        self.graph = Graph(
            torch.from_numpy(edges),
            len(self.ids),
            weight=None if weight is None else torch.from_numpy(weight[order]).float(),
            member=self.member,
            graphs=len(self.graph_ids) if self.member is not None else None,
        )
        if not len(kept):
            self.findings.append(
                Finding("extra", "edges", 0, f"{self.name} has no edges: each node is judged by itself.")
            )

    def _weight(self, table: Any, rows: np.ndarray) -> np.ndarray | None:
        if "weight" not in table or not pd.api.types.is_numeric_dtype(table["weight"].dtype):
            return None
        weight = table["weight"].to_numpy(np.float64, na_value=np.nan)[rows]
        if not np.isfinite(weight).all():
            raise WonderlandError(
                f"A weight of an edge of {self.name} is missing or infinite: fill it in, or drop the column."
            )
        return weight if (weight >= 0).all() else None

    # Examples

    def _rows(self, tables: Tables, options: Options, need: bool) -> None:
        table = {"nodes": self.node_table, "graphs": tables.graphs, "links": tables.edges}[self.of]
        self.row_table = table
        self.y: np.ndarray | None = None
        self.classes: list[str] | None = None
        self.task: str | None = None
        self.assigned: np.ndarray | None = None
        if self.of == "links" and self.target is None:
            self._link_rows(options)
        else:
            assert table is not None
            candidates = self.pair_rows if self.of == "links" else np.arange(len(table))
            if self.target is not None and (need or self.target in table):
                column = read_column(self.target, table[self.target].iloc[candidates].reset_index(drop=True))
                noticed: list[Finding] = []
                y, self.task, self.classes, chosen = read_target(column, None, noticed)
                for finding in noticed:
                    if finding.kind == "target missing":
                        text = f"{finding.count:,} of {len(candidates):,} {self.of} have no {self.target!r}: they are not learned from, only predicted."
                        finding = Finding("extra", self.target, finding.count, text)
                    self.findings.append(finding)
                self.y = y[chosen]
                candidates = candidates[chosen]
            else:
                chosen = np.arange(len(candidates))
            self.row_numbers = candidates
            self.rows = self.pairs.T[chosen] if self.of == "links" else candidates
        if self.of != "links" or self.target is not None:
            assert table is not None
            column = options.split if options.split is not None else _named_split(table)
            if options.split is not None and options.split not in table:
                if need:
                    raise WonderlandError(
                        f"There is no column {options.split!r} to split by.{nearest(options.split, [str(c) for c in table.columns])}"
                    )
                column = None
            if column is not None and need:
                self.assigned = read_assigned(table[column].iloc[self.row_numbers].reset_index(drop=True), column)
            self._grouped(table, options.group or (tables.group if need else None))
        self.split_column = options.split or (None if table is None else _named_split(table))
        if self.of == "graphs":
            drop = []
        else:
            drop = [self.target] if self.of == "nodes" and self.target else []
        drop += [name for name in (self.split_column, options.group) if name and self.of == "nodes"]
        frame = self.node_table.drop(columns=["id", *(["graph"] if self.member is not None else [])])
        self.node_frame = frame.drop(columns=[name for name in drop if name in frame])
        if self.of == "links":
            gone = [
                name for name in (self.target, self.split_column, options.group) if name and name in self.edge_frame
            ]
            self.edge_frame = self.edge_frame.drop(columns=gone)

    def _grouped(self, table: Any, column: str | None) -> None:
        """Rows with the same value in a column stay in one part."""
        if column is None:
            return
        if column not in table:
            known = [str(each) for each in table.columns]
            raise WonderlandError(
                f"The {self.of} of {self.name} have no column {column!r} to group by.{nearest(column, known)}"
            )
        cells = table[column].iloc[self.row_numbers].astype(object)
        names, codes = np.unique(cells.where(cells.notna(), "missing").astype(str), return_inverse=True)
        self.groups, self.group, self.group_names = codes.astype(np.int64), column, names.tolist()

    def _link_rows(self, options: Options) -> None:
        """Edges, and as many pairs that are none, chosen at random: both once, loops left out."""
        positive = self.pairs[:, self.pairs[0] != self.pairs[1]]
        if positive.shape[1] < 10:
            raise WonderlandError(
                f"{self.name} has {counted(positive.shape[1], 'edge', 'edges')}: too few to learn which nodes are joined."
            )
        negative = missing_pairs(positive, len(self.ids), self.directed)
        if len(negative) < positive.shape[1] // 2:
            raise WonderlandError(
                f"Nearly all pairs of nodes of {self.name} are joined, so there is nothing to tell apart."
            )
        self.rows = np.concatenate([positive.T, negative])
        self.y = np.repeat(np.array([1, 0]), [positive.shape[1], len(negative)])
        self.classes, self.task = list(LINK_CLASSES), "binary"
        self.row_numbers = np.arange(len(self.rows))

    def _fingerprint(self) -> str:
        total = hashlib.sha256(f"{self.of};{self.directed};{self.target};{self.classes}".encode())
        total.update("\0".join(self.ids).encode())
        for array in (self.graph.edges.numpy(), self.rows, self.y, self.features, self.assigned):
            total.update(b";" if array is None else np.ascontiguousarray(array).tobytes())
        if self.graph.weight is not None:
            total.update(self.graph.weight.numpy().tobytes())
        hashed: Any = hash_pandas_object
        for frame in (self.node_frame, self.edge_frame):
            total.update(hashed(frame, index=False).to_numpy().tobytes())
            total.update("\0".join(map(str, frame.columns)).encode())
        return total.hexdigest()

    # The contract of a dataset

    def __len__(self) -> int:
        return len(self.rows)

    def headline(self) -> str:
        about = self.task or "no target"
        about += f", {len(self.classes)} classes" if self.classes else ""
        many = f"{counted(len(self.graph_ids), 'graph', 'graphs')}, " if self.graph_ids else ""
        edges = counted(self.pairs.shape[1], "edge", "edges")
        return f"{self.name}: {many}{counted(len(self.ids), 'node', 'nodes')}, {edges}, {self.of} to predict, {about}"

    def summary(self) -> list[dict[str, Any]]:
        graph = self.graph
        degree = torch.bincount(graph.edges[1], minlength=graph.nodes).float()
        lines: list[tuple[str, Any]] = [
            ("predicted", f"{self.target or 'links'}, for {self.noun}"),
            ("graphs", len(self.graph_ids) or 1),
            ("nodes", graph.nodes),
            ("edges", self.pairs.shape[1]),
            ("direction", "directed" if self.directed else "undirected"),
            ("weights", "yes" if graph.weight is not None else "no"),
            ("columns of nodes", self.node_frame.shape[1] + (0 if self.features is None else self.features.shape[1])),
            ("columns of edges", self.edge_frame.shape[1]),
            ("mean degree", round(float(degree.mean()), 2)),
            ("largest degree", int(degree.max())),
            ("isolated nodes", int((degree == 0).sum())),
        ]
        if graph.nodes <= 200_000:
            lines.append(("connected components", int(graph.components().max()) + 1))
        codes = self.node_classes()
        if codes is not None:
            share = graph.homophily(codes)
            lines.append(("edges within a class", "none" if share is None else f"{share:.1%}"))
        return [{"what": name, "value": str(value)} for name, value in lines]

    def node_classes(self) -> np.ndarray | None:
        """The class of each node, -1 where it is not known; None where nodes have no classes."""
        if self.of != "nodes" or self.classes is None or self.y is None:
            return None
        codes = np.full(len(self.ids), -1, np.int64)
        codes[self.rows] = self.y
        return codes

    def example(self, i: int) -> dict[str, Any]:
        if self.of == "links":
            a, b = self.rows[i]
            shown: dict[str, Any] = {"source": self.ids[a], "target": self.ids[b]}
        elif self.of == "graphs":
            inside = self.graph.sizes[self.rows[i]]
            shown = {"graph": self.graph_ids[self.rows[i]], "nodes": int(inside)}
        else:
            node = int(self.rows[i])
            near = self.graph.edges[0][self.graph.edges[1] == node]
            shown = {
                "node": self.ids[node],
                "neighbours": len(near),
                "some of them": ", ".join(self.ids[j] for j in near[:6].tolist()),
            }
            row = self.node_frame.iloc[node]
            if self.node_frame.shape[1] <= 12:
                shown |= {str(name): row[name] for name in self.node_frame}
        if self.y is not None:
            shown["answer"] = self.classes[self.y[i]] if self.classes else float(self.y[i])
        return shown

    def labels(self) -> dict[str, list[Any]]:
        if self.of == "links":
            return {"source": [self.ids[a] for a in self.rows[:, 0]], "target": [self.ids[b] for b in self.rows[:, 1]]}
        if self.of == "graphs":
            return {"graph": [self.graph_ids[i] for i in self.rows]}
        return {"node": [self.ids[i] for i in self.rows]}


def _named_target(frame: Any, edges: bool = False) -> str | None:
    names = {str(name).strip().casefold(): str(name) for name in frame.columns}
    wanted = [name for name in TARGET_NAMES if not (edges and name == "target")]
    return next((names[name] for name in wanted if name in names and not _names_rows(frame[names[name]])), None)


def _names_rows(cells: Any) -> bool:
    """Whether each of many cells is another text that is no number: a name of its row, and no target."""
    given = cells.dropna().astype(str)
    numbers: Any = pd.to_numeric(given, errors="coerce")
    return len(given) > 10 and given.is_unique and bool(numbers.isna().all())


def _named_split(frame: Any) -> str | None:
    """A column called split whose cells name parts."""
    known = {"train", "training", "validation", "valid", "val", "dev", "calibration", "cal", "test", "testing", ""}
    for name in frame.columns:
        if str(name).strip().casefold() in SPLITS:
            cells = {str(cell).strip().casefold() for cell in frame[name].dropna().unique()[:20]}
            if cells <= known and {"train", "test"} <= cells | ({"train"} if "training" in cells else set()):
                return str(name)
    return None
