"""Graphs of torch_geometric as tables: one `Data`, a list, a batch or a dataset of them."""

from typing import Any

import numpy as np
import pandas as pd
import torch

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding
from wonderland.kinds.graph.tables import Tables

MASKS = (("train", "train_mask"), ("validation", "val_mask"), ("test", "test_mask"))


def is_pyg(source: Any) -> bool:
    """Whether an object is of torch_geometric, dynamically made classes included."""
    return any(each.__module__.startswith("torch_geometric.") for each in type(source).__mro__)


def from_pyg(source: Any) -> Tables:
    """One graph, or many: of a list, a batch or a dataset."""
    if hasattr(source, "edge_types"):
        raise WonderlandError(
            "Graphs with several types of nodes are not learned here: join them to one type first (data.to_homogeneous())."
        )
    if hasattr(source, "to_data_list"):
        source = source.to_data_list()
    elif not hasattr(source, "num_nodes"):
        source = [source[i] for i in range(len(source))]
    if not isinstance(source, list | tuple):
        return _single(source)
    return _single(source[0]) if len(source) == 1 else _several(source)


def _single(data: Any) -> Tables:
    """One graph: a target for each node if there is one, and the masks as the split."""
    tables = _tables(data)
    count = int(data.num_nodes)
    y = getattr(data, "y", None)
    if y is not None and y.dim() and len(y) == count:
        tables.nodes["target"] = _column(y, "node")
        _split(tables, data, count)
    return tables


def _split(tables: Tables, data: Any, count: int) -> None:
    """The column split from the masks; of several splits the first counts, and is said."""
    masks = {name: getattr(data, mask, None) for name, mask in MASKS}
    if masks["train"] is None or masks["test"] is None:
        return
    part = np.full(count, "", dtype=object)
    for name, mask in masks.items():
        if mask is None:
            continue
        several = mask.dim() == 2
        if several and name == "train":
            text = f"The masks hold {mask.shape[1]} splits; the first is used."
            tables.findings.append(Finding("split", "masks", mask.shape[1], text))
        part[(mask[:, 0] if several else mask).bool().numpy()] = name
    tables.nodes["split"] = part


def _several(many: Any) -> Tables:
    """Many graphs: a target for each of them, or for each of their nodes."""
    tables = [_tables(data, number) for number, data in enumerate(many)]
    targets = [getattr(data, "y", None) for data in many]
    nodes = [int(data.num_nodes) for data in many]
    graphs = pd.DataFrame({"id": [str(number) for number in range(len(tables))]})
    of_nodes = all(y is not None and y.dim() and len(y) == n for y, n in zip(targets, nodes, strict=True))
    if of_nodes and set(nodes) != {1}:
        for table, y in zip(tables, targets, strict=True):
            table.nodes["target"] = _column(y, "node")
    elif any(y is not None for y in targets):
        values = [np.nan if y is None else _column(y.reshape(1, -1), "graph")[0] for y in targets]
        whole = not any(value % 1 for value in values if not np.isnan(value))
        graphs["target"] = pd.Series(values).astype("Int64") if whole else values
    joined = pd.concat([each.nodes.assign(graph=str(number)) for number, each in enumerate(tables)], ignore_index=True)
    edges = pd.concat([each.edges for each in tables], ignore_index=True)
    given = [each.features for each in tables if each.features is not None]
    if len({each.shape[1] for each in given}) > 1:
        raise WonderlandError("The graphs describe their nodes by different numbers of features (x).")
    features = np.concatenate(given) if len(given) == len(tables) else None
    directed = any(each.directed for each in tables)
    return Tables(joined, edges, graphs, "graphs", {"memory": "graphs"}, directed=directed, features=features)


def _column(y: Any, noun: str) -> np.ndarray:
    """The target (n,) of `y` (n,), (n, 1), or one-hot (n, classes); several answers at once are refused."""
    values = y.reshape(len(y), -1).double().numpy()
    if values.shape[1] == 1:
        column = values[:, 0]
        return column if y.is_floating_point() else column.astype(np.int64)
    if np.isin(values, (0, 1)).all() and (values.sum(1) == 1).all():
        return values.argmax(1)
    raise WonderlandError(
        f"y holds {values.shape[1]} numbers for each {noun}, and one is learned at a time: keep one column of y."
    )


def _edges(data: Any) -> Any:
    """Both ends of all edges (2, m); of a transposed sparse adjacency matrix where there is no list."""
    if getattr(data, "edge_index", None) is not None:
        return data.edge_index.long().numpy()
    matrix = getattr(data, "adj_t", None)
    if isinstance(matrix, torch.Tensor):
        return matrix.to_sparse_coo().coalesce().indices().flip(0).numpy()
    return np.zeros((2, 0), np.int64)


def _tables(data: Any, number: int | None = None) -> Tables:
    """Nodes, edges and features of one graph; ids are numbers, after that of the graph where there are many."""
    prefix = "" if number is None else f"{number}/"
    nodes = pd.DataFrame({"id": [f"{prefix}{i}" for i in range(int(data.num_nodes))]})
    ends = _edges(data)
    edges = pd.DataFrame({"source": [f"{prefix}{i}" for i in ends[0]], "target": [f"{prefix}{i}" for i in ends[1]]})
    for name in ("edge_attr", "edge_weight"):
        if getattr(data, name, None) is not None:
            values = getattr(data, name).detach().double().numpy().reshape(len(edges), -1)
            if name == "edge_weight":
                edges["weight"] = values[:, 0]
            else:
                edges[[f"e{i}" for i in range(values.shape[1])]] = values
    x = getattr(data, "x", None)
    if x is not None:
        x = (x.to_dense() if x.layout != torch.strided else x).detach().float().numpy()
        x = x if x.ndim == 2 else x.reshape(len(x), int(np.prod(x.shape[1:])))
    return Tables(nodes, edges, features=x, directed=not data.is_undirected())
