"""Tables of nodes, edges and graphs, with ids as text, however their columns are called."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding, counted
from wonderland.data.read import SUFFIXES

TABLES = tuple(suffix + zipped for suffix in SUFFIXES for zipped in ("", ".gz"))
STEMS = {"nodes": ("nodes", "node", "vertices"), "edges": ("edges", "edge", "links"), "graphs": ("graphs", "graph")}
IDS = ("id", "node", "node_id", "nodeid", "name")
ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("head", "tail"), ("node1", "node2"), ("id1", "id2"),
        ("a", "b"), ("citing", "cited"))  # fmt: skip
GRAPHS = ("graph", "graph_id", "graphid")


@dataclass
class Tables:
    """Nodes with the column "id" first, edges with "source" and "target" first, graphs with "id" first where there are many.

    `features` (n, d) are numbers of nodes that come as an array; `directed` is what the format says, None where it says nothing.
    The three tables are frames, or None for no nodes and no graphs. Give one to `wonderland.fit` to learn from frames in memory.
    """

    nodes: Any
    edges: Any
    graphs: Any = None
    name: str = "graph"
    origin: dict[str, Any] = field(default_factory=lambda: {"memory": "graph"})
    directed: bool | None = None
    features: np.ndarray | None = None
    findings: list[Finding] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    smiles: str | None = None  # the column of molecules that the graphs were made from
    group: str | None = None  # the column of the graphs whose rows stay together where the user names none

    def __post_init__(self):
        if self.graphs is not None:
            self.nodes, self.edges = named_apart(self.nodes, self.edges, self.name)
        self.edges = _edges(self.edges, self.name)
        if self.nodes is not None:
            self.nodes = _named(self.nodes, IDS, "nodes", self.name, with_graph=self.graphs is not None)
        if self.graphs is not None:
            self.graphs = _named(self.graphs, (*GRAPHS, *IDS), "graphs", self.name)


def table_of(folder: Path, stem: str) -> Path | None:
    """The table of a folder with this name, such as nodes.csv; under its other names, such as links.csv, where nodes have a table."""
    try:
        there = {path.name.lower(): path for path in folder.iterdir() if path.is_file()}
    except OSError:
        return None

    def first(names: tuple[str, ...]) -> Path | None:
        return next((there[name + suffix] for name in names for suffix in TABLES if name + suffix in there), None)

    return first((stem,)) or (first(STEMS[stem]) if first(STEMS["nodes"]) else None)


def ids_of(cells: Any) -> Any:
    """Ids as text; whole numbers without a decimal point."""
    if pd.api.types.is_float_dtype(cells.dtype) and cells.notna().all() and bool((cells % 1 == 0).all()):
        cells = cells.astype("int64")
    return cells.astype(object).where(cells.notna(), None).map(lambda cell: None if cell is None else str(cell).strip())


def _edges(frame: Any, name: str) -> Any:
    columns = {str(column).strip().casefold(): column for column in frame.columns}
    pair = next(((columns[a], columns[b]) for a, b in ENDS if a in columns and b in columns), None)
    if pair is None:
        plain = [column for column in frame.columns if str(column).strip().casefold() not in GRAPHS]
        if len(plain) < 2:
            raise WonderlandError(f"The edges of {name} have one column, where an edge has two ends.")
        pair = plain[0], plain[1]
    edges = frame.rename(columns={pair[0]: "source", pair[1]: "target"})
    rest = [column for column in edges.columns if column not in ("source", "target")]
    source, target = _ends(edges["source"], edges["target"])
    for end, cells in (("source", source), ("target", target)):
        empty = np.flatnonzero(cells.codes < 0)
        if len(empty):
            raise WonderlandError(f"An edge of {name} has no {end} (row {empty[0] + 1} of the edges).")
    ends = pd.DataFrame({"source": source, "target": target})
    return pd.concat([ends, edges[rest].reset_index(drop=True)], axis=1) if rest else ends


def _ends(source: Any, target: Any) -> tuple[Any, Any]:
    """Both ends of all edges as categories of the same texts: an id is kept once, however many edges name it."""
    for cells in (source, target):
        if not isinstance(cells.dtype, pd.CategoricalDtype):
            break
    else:
        if source.cat.categories.equals(target.cat.categories):
            return source.array, target.array
    count = len(source)
    codes, levels = pd.factorize(
        pd.concat([source.astype(_plain(source)), target.astype(_plain(target))], ignore_index=True)
    )
    again, texts = pd.factorize(ids_of(pd.Series(levels)))
    codes = np.where(codes < 0, -1, again[codes] if len(again) else -1)
    return tuple(pd.Categorical.from_codes(half, categories=list(texts)) for half in (codes[:count], codes[count:]))  # pyright: ignore


def _plain(cells: Any) -> Any:
    return object if isinstance(cells.dtype, pd.CategoricalDtype) else cells.dtype


def node_ids(edges: Any) -> list[str]:
    """The nodes that edges name, in the order in which they come: sources first."""
    codes = np.concatenate([edges[end].cat.codes.to_numpy() for end in ("source", "target")])
    names = edges["source"].cat.categories
    return [names[code] for code in pd.unique(codes)]


def positions(cells: Any, place: Mapping[str, int]) -> np.ndarray:
    """The numbers of the nodes that an end of each edge names, -1 for a node that is not there."""
    known = np.array([_place(name, place) for name in cells.cat.categories], np.int64)
    return known[cells.cat.codes.to_numpy()] if len(known) else np.zeros(0, np.int64)


def _place(name: str, place: Mapping[str, int]) -> int:
    """The number of a node; a whole number is found with and without a decimal point."""
    node = place.get(name, -1)
    if node < 0 and name.endswith(".0"):
        return place.get(name[:-2], -1)
    return place.get(name + ".0", -1) if node < 0 and name.isdigit() else node


def named_apart(nodes: Any, edges: Any, name: str) -> tuple[Any, Any]:
    """Nodes and edges of many graphs with ids that are unique: after that of the graph where they were so within a graph only.

    Without nodes, those that edges name become nodes of the graph of the edge. The column graph of edges is left out.
    """
    of_edge = _graph_column(edges)
    if nodes is None:
        if of_edge is None:
            raise WonderlandError(f"{name} has graphs and no nodes.csv, which says which graph each node belongs to.")
        named = _edges(edges, name)
        ends = [
            pd.DataFrame({"id": named[end].astype(object), "graph": named[of_edge]}) for end in ("source", "target")
        ]
        nodes = pd.concat(ends).drop_duplicates().reset_index(drop=True)
    of_node = _graph_column(nodes)
    if of_edge is None or of_node is None:
        return nodes, edges
    column = _id_column(nodes, IDS)
    if ids_of(nodes[column]).duplicated().any():
        graph, belongs = ids_of(nodes[of_node]), ids_of(edges[of_edge])
        nodes = nodes.assign(**{column: graph + "/" + ids_of(nodes[column])})
        edges = _edges(edges, name)
        edges = edges.assign(**{end: belongs + "/" + edges[end].astype(object) for end in ("source", "target")})
    return nodes, edges.drop(columns=[of_edge])


def _graph_column(frame: Any) -> Any:
    named = {str(each).strip().casefold(): each for each in frame.columns}
    return next((named[each] for each in GRAPHS if each in named), None)


def _id_column(frame: Any, names: tuple[str, ...]) -> Any:
    columns = {str(column).strip().casefold(): column for column in frame.columns}
    return next((columns[each] for each in names if each in columns), frame.columns[0])


def _named(frame: Any, names: tuple[str, ...], noun: str, name: str, with_graph: bool = False) -> Any:
    named = frame.rename(columns={_id_column(frame, names): "id"})
    named = named[["id", *(each for each in named.columns if each != "id")]].copy()
    named["id"] = ids_of(named["id"])
    missing = np.flatnonzero(named["id"].isna())
    if len(missing):
        raise WonderlandError(f"Row {missing[0] + 1} of the {noun} of {name} has no id.")
    twice = named["id"].duplicated()
    if twice.any():
        again = int(np.flatnonzero(twice)[0])
        first = int(np.flatnonzero(named["id"] == named["id"].iloc[again])[0])
        raise WonderlandError(
            f"The {noun} of {name} name {named['id'].iloc[again]!r} twice, in rows {first + 1} and {again + 1}. Ids are unique."
        )
    if with_graph:
        chosen = _graph_column(named)
        if chosen is None:
            raise WonderlandError(f"The nodes of {name} need a column graph that says which graph each belongs to.")
        named = named.rename(columns={chosen: "graph"})
        named["graph"] = ids_of(named["graph"])
    return named.reset_index(drop=True)


def dangling(count: int, example: str, name: str) -> Finding:
    """What is said of edges that end nowhere."""
    text = f"{counted(count, 'edge names a node', 'edges name nodes')} that {name} does not have, such as {example!r}, and {'is' if count == 1 else 'are'} left out."
    return Finding("dangling", "edges", count, text)
