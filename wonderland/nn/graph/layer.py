"""GraphLayer: what layers of graphs share. They take node features and a graph, and give node features."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.pattern import SparseRows
from wonderland.ops.sparse_product import sparse_product


class GraphLayer(Part, nn.Module):
    """A layer `forward(x, graph)`, or `forward(x, graph, edge)` with features of edges (m, ...) in the order of `graph.edges`.

    Laws that every layer keeps: the order of nodes and edges does not matter; what is more hops away than the layer reaches does
    not matter; graphs of a batch do not meet.
    """


def check(layer: nn.Module, x: Any, graph: Any, edge: Tensor | None = None) -> None:
    """Refuse features that do not belong to the graph."""
    name = type(layer).__name__
    if not isinstance(graph, Graph):
        raise WonderlandError(
            f"{name} takes features and a Graph, not a {type(graph).__name__}: make one with Graph(edges)."
        )
    if len(x.shape) < 2 or x.shape[0] != graph.nodes:
        raise WonderlandError(
            f"{name} takes a row of features for each of {graph.nodes:,} nodes, not {tuple(x.shape)}."
        )
    if edge is not None and len(edge) != graph.edges.shape[1]:
        raise WonderlandError(
            f"{name} takes a row of features for each of {graph.edges.shape[1]:,} edges, not {tuple(edge.shape)}."
        )


def project(linear: nn.Linear, x: Tensor | SparseRows) -> Tensor:
    """A linear layer on dense or sparse rows."""
    if isinstance(x, SparseRows):
        made = sparse_product(x.pattern, x.value, linear.weight.t())
        return made if linear.bias is None else made + linear.bias
    return linear(x)


def drop_features(x: Any, p: float, training: bool) -> Any:
    """Dropout on dense or sparse rows."""
    return x.drop(p, training) if isinstance(x, SparseRows) else F.dropout(x, p, training)


def glorot(*weights: Tensor) -> None:
    """Uniform weights of Glorot and Bengio."""
    for weight in weights:
        nn.init.xavier_uniform_(weight)
