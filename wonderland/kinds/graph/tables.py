"""Tables of nodes, edges and graphs, from the forms in which people keep graphs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, need
from wonderland.core.graph import Graph
from wonderland.core.limits import check
from wonderland.data.dataset import Finding, counted
from wonderland.data.read import SUFFIXES, read_file
from wonderland.kinds.graph.edge_lists import memory_needed, read_edge_list

TABLES = tuple(suffix + zipped for suffix in SUFFIXES for zipped in ("", ".gz"))
FILES = (".graphml", ".gml", ".edgelist", ".edges")
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
        self.edges = _edges(self.edges, self.name)
        if self.nodes is not None:
            self.nodes = _named(self.nodes, IDS, "nodes", self.name, with_graph=self.graphs is not None)
        if self.graphs is not None:
            self.graphs = _named(self.graphs, (*GRAPHS, *IDS), "graphs", self.name)


def table_of(folder: Path, stem: str) -> Path | None:
    """The table of a folder with this name, such as nodes.csv."""
    try:
        there = {path.name.lower(): path for path in folder.iterdir() if path.is_file()}
    except OSError:
        return None
    return next((there[stem + suffix] for suffix in TABLES if stem + suffix in there), None)


def forms() -> Any:
    """Graphs in memory; that file imports this one."""
    from wonderland.kinds.graph import forms

    return forms


def is_table(path: Path) -> bool:
    """Whether a file is a table by its ending."""
    return any(path.name.lower().endswith(ending) for ending in TABLES)


def is_graph(source: Any) -> str:
    """Why an object in memory is a graph, or nothing."""
    if isinstance(source, Graph):
        return "it is a Graph"
    if isinstance(source, Tables):
        return "it holds tables of nodes and edges"
    first = source[0] if isinstance(source, list | tuple) and source else source
    home = type(first).__module__.split(".")[0]
    if home == "networkx" and hasattr(first, "edges"):
        return "it is a graph of networkx"
    if home == "torch_geometric" and hasattr(first, "edge_index"):
        return "it is a graph of torch_geometric"
    if home == "scipy" and hasattr(first, "tocoo"):
        return "it is a sparse matrix"
    return ""


def read_tables(source: Any, smiles: str | None = None) -> Tables:
    """The tables of any source; `smiles` is the column of a table that holds molecules."""
    if isinstance(source, Tables):
        return source
    if isinstance(source, pd.DataFrame):
        from wonderland.kinds.graph.molecules import read_molecules

        return read_molecules(source, smiles, "table", {"memory": "table"})
    if not isinstance(source, str | Path):
        return forms().from_memory(source)
    path = Path(source).expanduser()
    origin = {"path": str(path.absolute())}
    if path.is_dir():
        return _from_folder(path, origin) if table_of(path, "edges") else _from_tu(path, origin)
    if not path.is_file():
        raise WonderlandError(f"{path} is not there: give a folder with nodes.csv and edges.csv, or a file of a graph.")
    if is_table(path):
        from wonderland.kinds.graph.molecules import read_molecules

        frame, findings = read_file(path)
        if smiles is None and _named_ends(frame):
            return Tables(None, frame, None, path.name, origin, findings=findings)
        made = read_molecules(frame, smiles, path.name, origin)
        made.findings = [*findings, *made.findings]
        return made
    if path.suffix.lower() in (".graphml", ".gml"):
        return forms().from_networkx(_parsed(path), path.name, origin)
    frame, findings = read_edge_list(path)
    return Tables(None, frame, None, path.name, origin, findings=findings)


def _named_ends(frame: pd.DataFrame) -> bool:
    """Whether a table has columns that are called as the two ends of edges are."""
    names = {str(column).strip().casefold() for column in frame.columns}
    return any(a in names and b in names for a, b in ENDS)


def _from_tu(folder: Path, origin: dict[str, Any]) -> Tables:
    from wonderland.kinds.graph.tu_folder import read_tu_folder, tu_name

    return _from_folder(folder, origin) if tu_name(folder) is None else read_tu_folder(folder)


def _from_folder(folder: Path, origin: dict[str, Any]) -> Tables:
    places = {stem: table_of(folder, stem) for stem in ("nodes", "edges", "graphs")}
    if places["edges"] is None:
        raise WonderlandError(f"{folder} has no edges.csv: one line for each edge, with the ids of its two nodes.")
    findings, frames = memory_needed(places["edges"]), {}
    for stem, path in places.items():
        if path is not None:
            frames[stem], noticed = _read(path, stem)
            findings += noticed
    return Tables(
        frames.get("nodes"), frames["edges"], frames.get("graphs"), folder.resolve().name, origin, findings=findings
    )


def _read(path: Path, stem: str) -> tuple[pd.DataFrame, list[Finding]]:
    text = [name for pair in ENDS for name in pair] if stem == "edges" else list(IDS)
    try:
        return read_file(path, (*text, *GRAPHS, *map(str.title, (*text, *GRAPHS))))
    except WonderlandError as error:
        if stem == "edges" and "has a header line and no rows" in str(error):
            return pd.DataFrame({"source": [], "target": []}, dtype=object), []
        raise


def _parsed(path: Path) -> Any:
    networkx = need("networkx", extra="graphs", why=f"to read {path.suffix} files")
    check("graph_bytes", path.stat().st_size, path)
    try:
        if path.suffix.lower() == ".gml":
            return networkx.read_gml(path)
        start = path.read_bytes()[:4096].lower()
        if b"<!entity" in path.read_bytes().lower() or b"<!doctype" in start:
            raise WonderlandError(f"{path} declares entities of its own, so it is not read.")
        return networkx.read_graphml(path)
    except WonderlandError:
        raise
    except Exception as error:
        said = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise WonderlandError(f"{path} cannot be read as {path.suffix[1:].lower()}: {said}") from error


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
    made = frame.rename(columns={pair[0]: "source", pair[1]: "target"})
    rest = [column for column in made.columns if column not in ("source", "target")]
    source, target = _ends(made["source"], made["target"])
    for end, cells in (("source", source), ("target", target)):
        empty = np.flatnonzero(cells.codes < 0)
        if len(empty):
            raise WonderlandError(f"An edge of {name} has no {end} (row {empty[0] + 1} of the edges).")
    ends = pd.DataFrame({"source": source, "target": target})
    return pd.concat([ends, made[rest].reset_index(drop=True)], axis=1) if rest else ends


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
    known = np.array([place.get(name, -1) for name in cells.cat.categories], np.int64)
    return known[cells.cat.codes.to_numpy()] if len(known) else np.zeros(0, np.int64)


def _named(frame: Any, names: tuple[str, ...], what: str, name: str, with_graph: bool = False) -> Any:
    columns = {str(column).strip().casefold(): column for column in frame.columns}
    column = next((columns[each] for each in names if each in columns), frame.columns[0])
    made = frame.rename(columns={column: "id"})
    made = made[["id", *(each for each in made.columns if each != "id")]].copy()
    made["id"] = ids_of(made["id"])
    missing = np.flatnonzero(made["id"].isna())
    if len(missing):
        raise WonderlandError(f"Row {missing[0] + 1} of the {what} of {name} has no id.")
    twice = made["id"].duplicated()
    if twice.any():
        again = int(np.flatnonzero(twice)[0])
        first = int(np.flatnonzero(made["id"] == made["id"].iloc[again])[0])
        raise WonderlandError(
            f"The {what} of {name} name {made['id'].iloc[again]!r} twice, in rows {first + 1} and {again + 1}. Ids are unique."
        )
    if with_graph:
        of = {str(each).strip().casefold(): each for each in made.columns}
        chosen = next((of[each] for each in GRAPHS if each in of), None)
        if chosen is None:
            raise WonderlandError(f"The nodes of {name} need a column graph that says which graph each belongs to.")
        made = made.rename(columns={chosen: "graph"})
        made["graph"] = ids_of(made["graph"])
    return made.reset_index(drop=True)


def dangling(count: int, example: str, name: str) -> Finding:
    """What is said of edges that end nowhere."""
    text = f"{counted(count, 'edge names a node', 'edges name nodes')} that {name} does not have, such as {example!r}, and {'is' if count == 1 else 'are'} left out."
    return Finding("dangling", "edges", count, text)
