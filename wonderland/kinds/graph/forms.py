"""Graphs in memory, of this library and of others, as tables."""

from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.kinds.graph.pyg_forms import from_pyg, is_pyg
from wonderland.kinds.graph.tables import Tables


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
    if is_pyg(first):
        return "it is a graph of torch_geometric"
    if home == "scipy" and hasattr(first, "tocoo"):
        return "it is a sparse matrix"
    return ""


def from_memory(source: Any) -> Tables:
    if not is_graph(source):
        raise WonderlandError(f"A {type(source).__name__} is not a graph that is known here.")
    if isinstance(source, Graph):
        return _from_graph(source)
    several = isinstance(source, list | tuple)
    first = source[0] if several else source
    home = type(first).__module__.split(".")[0]
    if home == "networkx":
        return _joined([from_networkx(each, "graph", {"memory": "graph"}) for each in source]) if several else from_networkx(
            source, "graph", {"memory": "graph"})  # fmt: skip
    if home == "scipy":
        return _from_scipy(source)
    return from_pyg(source)


def from_networkx(graph: Any, name: str, origin: dict[str, Any]) -> Tables:
    nodes, features = _expanded(pd.DataFrame([{"id": str(node), **data} for node, data in graph.nodes(data=True)]))
    edges = pd.DataFrame([{"source": str(a), "target": str(b), **data} for a, b, data in graph.edges(data=True)])
    edges, vectors = _expanded(edges)
    if vectors is not None:
        edges[[f"e{i}" for i in range(vectors.shape[1])]] = vectors
    if not len(edges):
        edges = pd.DataFrame({"source": [], "target": []}, dtype=object)
    if not len(nodes):
        raise WonderlandError(f"{name} has no nodes.")
    flat = nodes.drop(
        columns=[column for column in nodes if column in ("label",) and nodes[column].astype(str).equals(nodes["id"])]
    )
    tables = Tables(flat, edges, None, name, origin, directed=bool(graph.is_directed()), features=features)
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in graph.graph.items()}
    tables.about = {key: value for key, value in plain.items() if isinstance(value, str | int | float)}
    return tables


def _expanded(frame: Any) -> tuple[Any, np.ndarray | None]:
    """A frame without the columns whose cells are vectors, and the numbers of these (n, k); other nested cells become text."""
    vectors = []
    for column in list(frame.columns):
        cells = frame[column]
        if (
            cells.dtype != object
            or not cells.map(lambda cell: isinstance(cell, _NESTED) or hasattr(cell, "shape")).any()
        ):
            continue
        try:
            rows = [np.asarray(cell, np.float32) for cell in cells]
        except (TypeError, ValueError):
            rows = []
        if rows and rows[0].ndim == 1 and len({each.shape for each in rows}) == 1:
            vectors.append(np.stack(rows))
            frame = frame.drop(columns=[column])
        else:
            frame[column] = cells.map(
                lambda cell: str(cell) if isinstance(cell, _NESTED) or hasattr(cell, "shape") else cell
            )
    return frame, np.concatenate(vectors, 1) if vectors else None


_NESTED = (list, tuple, set, dict)


def _joined(many: list[Tables]) -> Tables:
    """Many graphs as one set, ids made different."""
    nodes, edges, graphs = [], [], []
    for number, each in enumerate(many):
        assert each.nodes is not None
        graphs.append({"id": str(number), **each.about})
        nodes.append(each.nodes.assign(id=[f"{number}/{node}" for node in each.nodes["id"]], graph=str(number)))
        edges.append(
            each.edges.assign(
                source=[f"{number}/{node}" for node in each.edges["source"]],
                target=[f"{number}/{node}" for node in each.edges["target"]],
            )
        )
    every = pd.concat(nodes, ignore_index=True), pd.concat(edges, ignore_index=True)
    origin = {"memory": "graphs"}
    given = [each.features for each in many if each.features is not None]
    fitting = len(given) == len(many) and len({each.shape[1] for each in given}) == 1
    features = np.concatenate(given) if fitting else None
    table = pd.DataFrame(graphs)
    return Tables(every[0], every[1], table, "graphs", origin, directed=many[0].directed, features=features)


def _from_graph(graph: Graph) -> Tables:
    """A Graph: its edges and weights, and the graphs that its nodes belong to."""
    nodes = pd.DataFrame({"id": np.arange(graph.nodes)})
    edges = pd.DataFrame(graph.edges.t().numpy(), columns=["source", "target"])
    if graph.weight is not None:
        edges["weight"] = graph.weight.double().numpy()
    return Tables(nodes, edges, directed=not graph.is_undirected)


def _from_scipy(matrix: Any) -> Tables:
    coo = matrix.tocoo()
    if coo.shape[0] != coo.shape[1]:
        raise WonderlandError(f"An adjacency matrix is square, not {tuple(coo.shape)}.")
    nodes = pd.DataFrame({"id": [str(i) for i in range(coo.shape[0])]})
    edges = pd.DataFrame({"source": coo.col.astype(str), "target": coo.row.astype(str)})
    if not (coo.data == 1).all():
        edges["weight"] = np.asarray(coo.data, np.float64)
    return Tables(nodes, edges)
