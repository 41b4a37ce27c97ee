"""Graphs from any source: folders, files and objects in memory, as tables."""

from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding
from wonderland.data.read import read_file
from wonderland.kinds.graph.citation_files import CITES, CONTENT, citation_files, read_citations
from wonderland.kinds.graph.edge_lists import memory_needed, read_edge_list
from wonderland.kinds.graph.forms import from_memory, from_networkx
from wonderland.kinds.graph.markup_files import MARKUP, read_markup
from wonderland.kinds.graph.molecules import read_molecules, smiles_column
from wonderland.kinds.graph.node_link import looks_like_node_link, read_node_link
from wonderland.kinds.graph.tables import ENDS, GRAPHS, IDS, TABLES, Tables, table_of
from wonderland.kinds.graph.tu_folder import read_tu_folder, tu_name

LISTS = (".edgelist", ".edges", ".edgelist.gz", ".edges.gz")
FILES = (*MARKUP, CONTENT, CITES, *LISTS)
SAMPLE = 1 << 16
PLAIN = (".txt", ".csv", ".tsv", ".txt.gz", ".csv.gz", ".tsv.gz")  # which may be lists of edges


def is_table(path: Path) -> bool:
    """Whether a file is a table by its ending."""
    return any(path.name.lower().endswith(ending) for ending in TABLES)


def read_tables(source: Any, smiles: str | None = None) -> Tables:
    """The tables of any source; `smiles` is the column of a table that holds molecules."""
    if isinstance(source, Tables):
        return source
    if isinstance(source, pd.DataFrame):
        if smiles is None and smiles_column(source) is None and _named_ends(source):
            return Tables(None, source, None, "table", {"memory": "table"})
        return read_molecules(source, smiles, "table", {"memory": "table"})
    if not isinstance(source, str | Path):
        return from_memory(source)
    path = Path(source).expanduser()
    origin = {"path": str(path.absolute())}
    if path.is_dir():
        if citation_files(path) is not None and not table_of(path, "edges"):
            return read_citations(path)
        return _from_folder(path, origin) if table_of(path, "edges") else _from_tu(path, origin)
    if not path.is_file():
        raise WonderlandError(f"{path} is not there: give a folder with nodes.csv and edges.csv, or a file of a graph.")
    if citation_files(path) is not None or path.suffix == CONTENT:
        return read_citations(path)
    if path.suffix.lower() in MARKUP:
        return from_networkx(read_markup(path), path.name, origin)
    if is_table(path):
        tables = _from_table(path, smiles, origin)
        if tables is not None:
            return tables
    frame, findings = read_edge_list(path)
    return Tables(None, frame, None, path.name, origin, findings=findings)


def _from_table(path: Path, smiles: str | None, origin: dict[str, Any]) -> Tables | None:
    """A table of edges, of molecules, or a JSON file of nodes and links; None for a list of edges without names of columns."""
    if path.suffix.lower() == ".json" and looks_like_node_link(
        (path.read_bytes()[:SAMPLE], path.read_bytes()[-SAMPLE:])
    ):
        return read_node_link(path)
    frame, findings = read_file(path)
    if smiles is None and _named_ends(frame):
        return Tables(None, frame, None, path.name, origin, findings=findings)
    if smiles is None and smiles_column(frame) is None and path.name.lower().endswith(PLAIN):
        return None
    molecules = read_molecules(frame, smiles, path.name, origin)
    molecules.findings = [*findings, *molecules.findings]
    return molecules


def _named_ends(frame: pd.DataFrame) -> bool:
    """Whether a table has columns that are called as the two ends of edges are."""
    names = {str(column).strip().casefold() for column in frame.columns}
    return any(a in names and b in names for a, b in ENDS)


def _from_tu(folder: Path, origin: dict[str, Any]) -> Tables:
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
