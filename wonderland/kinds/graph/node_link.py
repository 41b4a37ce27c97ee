"""JSON with a list of nodes and a list of links, as networkx, D3 and Cytoscape write it."""

from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError, read_json
from wonderland.kinds.graph.tables import Tables

LINKS = ("links", "edges")


def looks_like_node_link(samples: tuple[bytes, ...]) -> bool:
    """Whether the start and the end of a file of JSON have the names of both lists."""
    text = b" ".join(samples)
    return samples[0].lstrip()[:1] == b"{" and b'"nodes"' in text and (b'"links"' in text or b'"edges"' in text)


def read_node_link(path: Path) -> Tables:
    """Nodes and edges of such a file; links name ids, or places in the list of nodes where these have no ids."""
    value = read_json(path, strict=False)
    if isinstance(value, dict) and isinstance(value.get("elements"), dict):  # Cytoscape
        value = {
            key: [_data(each) for each in rows] for key, rows in value["elements"].items() if isinstance(rows, list)
        }
    links = (
        next((value[name] for name in LINKS if isinstance(value.get(name), list)), None)
        if isinstance(value, dict)
        else None
    )
    nodes = value.get("nodes") if isinstance(value, dict) else None
    if links is None or not isinstance(nodes, list) or not all(isinstance(each, dict) for each in [*nodes, *links]):
        raise WonderlandError(
            f'{path} holds no graph: expected {{"nodes": [{{"id": ...}}], "links": [{{"source": ..., "target": ...}}]}}.'
        )
    if not nodes:
        raise WonderlandError(f"{path.name} has no nodes.")
    if any(not {"source", "target"} <= each.keys() for each in links):
        raise WonderlandError(f"{path}: a link has no source or no target.")
    if not all("id" in each for each in nodes):
        nodes = [{"id": place, **each} for place, each in enumerate(nodes)]
    edges = pd.DataFrame([{key: _cell(cell) for key, cell in each.items()} for each in links], dtype=object)
    edges = edges.infer_objects() if len(links) else pd.DataFrame({"source": [], "target": []}, dtype=object)
    table = pd.DataFrame([{key: _cell(cell) for key, cell in each.items()} for each in nodes])
    directed = value.get("directed")
    return Tables(
        table,
        edges,
        None,
        path.name,
        {"path": str(path.absolute())},
        directed=directed if isinstance(directed, bool) else None,
    )


def _data(element: Any) -> Any:
    return element.get("data") if isinstance(element, dict) else element


def _cell(cell: Any) -> Any:
    """Cells are numbers and words; what is nested is left out."""
    return None if isinstance(cell, dict | list) else cell
