"""Graphs in memory, of this library and of others, as tables."""

from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.kinds.graph.tables import Tables, is_graph


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
    return _from_pyg_list(source) if several else _from_pyg(source)


def from_networkx(graph: Any, name: str, origin: dict[str, Any]) -> Tables:
    nodes = pd.DataFrame([{"id": str(node), **data} for node, data in graph.nodes(data=True)])
    edges = pd.DataFrame([{"source": str(a), "target": str(b), **data} for a, b, data in graph.edges(data=True)])
    if not len(edges):
        edges = pd.DataFrame({"source": [], "target": []}, dtype=object)
    if not len(nodes):
        raise WonderlandError(f"{name} has no nodes.")
    flat = nodes.drop(
        columns=[column for column in nodes if column in ("label",) and nodes[column].astype(str).equals(nodes["id"])]
    )
    made = Tables(flat, edges, None, name, origin, directed=bool(graph.is_directed()))
    about = {key: value for key, value in graph.graph.items() if isinstance(value, str | int | float)}
    made.about = about
    return made


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
    return Tables(every[0], every[1], pd.DataFrame(graphs), "graphs", origin, directed=many[0].directed)


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


def _from_pyg(data: Any, number: int | None = None) -> Tables:
    count = int(data.num_nodes)
    prefix = "" if number is None else f"{number}/"
    nodes = pd.DataFrame({"id": [f"{prefix}{i}" for i in range(count)]})
    ends = data.edge_index.numpy() if data.edge_index is not None else np.zeros((2, 0), np.int64)
    edges = pd.DataFrame({"source": [f"{prefix}{i}" for i in ends[0]], "target": [f"{prefix}{i}" for i in ends[1]]})
    for name in ("edge_attr", "edge_weight"):
        if getattr(data, name, None) is not None:
            values = getattr(data, name).double().numpy().reshape(len(edges), -1)
            if name == "edge_weight":
                edges["weight"] = values[:, 0]
            else:
                edges[[f"e{i}" for i in range(values.shape[1])]] = values
    y = getattr(data, "y", None)
    if number is None and y is not None and len(y) == count:
        nodes["target"] = y.reshape(count, -1)[:, 0].numpy()
        masks: Any = [
            (name, getattr(data, f"{key}_mask", None))
            for name, key in (("train", "train"), ("validation", "val"), ("test", "test"))
        ]
        if all(mask is not None and mask.dim() == 1 for _, mask in masks):
            part = np.full(count, "", dtype=object)
            for name, mask in masks:
                part[mask.numpy()] = name
            nodes["split"] = part
    features = None if data.x is None else data.x.float().numpy()
    return Tables(nodes, edges, features=features, directed=not data.is_undirected())


def _from_pyg_list(many: Any) -> Tables:
    tables = [_from_pyg(data, number) for number, data in enumerate(many)]
    targets = [None if data.y is None else float(data.y.reshape(-1)[0]) for data in many]
    graphs = pd.DataFrame({"id": [str(number) for number in range(len(tables))], "target": targets})
    if not any(value is not None and value % 1 for value in targets):
        graphs["target"] = graphs["target"].astype("Int64")
    nodes = pd.concat([each.nodes.assign(graph=str(number)) for number, each in enumerate(tables)], ignore_index=True)
    edges = pd.concat([each.edges for each in tables], ignore_index=True)
    given = [each.features for each in tables if each.features is not None]
    features = np.concatenate(given) if len(given) == len(tables) else None
    return Tables(nodes, edges, graphs, "graphs", {"memory": "graphs"}, directed=tables[0].directed, features=features)
