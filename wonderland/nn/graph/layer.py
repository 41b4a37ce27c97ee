"""GraphLayer: what layers of graphs share. They take node features and a graph, and give node features."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.pattern import SparseRows
from wonderland.laws import (
    determinism,
    gradients,
    graph_batching,
    graph_edge_cases,
    graph_locality,
    graph_permutation,
)
from wonderland.nn.contract.arguments import Checked
from wonderland.ops.over_time import is_exporting
from wonderland.ops.sparse_product import sparse_product


class GraphLayer(Checked, nn.Module):
    """A layer `forward(x, graph)`, or `forward(x, graph, edge)` with features of edges (m, ...) in the order of `graph.edges`.

    Laws that every layer keeps: the order of nodes and edges does not matter; what is more hops away than the layer reaches does
    not matter; graphs of a batch do not meet. `hops` is how far a layer reaches, None for the whole graph.
    """

    hops: int | None = None

    def laws(self) -> tuple[Any, ...]:
        """Laws that the layer keeps, for `wonderland.check(layer, Example((x, graph)))`."""
        return graph_permutation, graph_locality, graph_batching, graph_edge_cases, gradients, determinism


def check(layer: nn.Module, x: Any, graph: Any, edge: Tensor | None = None) -> None:
    """Refuse features that do not belong to the graph."""
    name = type(layer).__name__
    if not isinstance(graph, Graph):
        raise WonderlandError(
            f"{name} takes features and a Graph, not a {type(graph).__name__}: make one with Graph(edges)."
        )
    if is_exporting():
        return
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
        projected = sparse_product(x.pattern, x.value, linear.weight.t())
        return projected if linear.bias is None else projected + linear.bias
    return linear(x)


def drop_features(x: Any, p: float, training: bool) -> Any:
    """Dropout on dense or sparse rows."""
    return x.drop(p, training) if isinstance(x, SparseRows) else F.dropout(x, p, training)


_LEAN: Any = WeakTensorKeyDictionary()  # of a tensor: its version, and its sparse form if it is mostly 0
MOSTLY_ZERO = 0.05
WIDE = 128


def lean(x: Any) -> Any:
    """Features that are mostly 0 as sparse rows; found once for a tensor that is used again and does not learn."""
    plain = type(x) is Tensor and x.dim() == 2 and x.shape[1] >= WIDE and not x.requires_grad and x.is_floating_point()
    if not plain or torch.compiler.is_compiling() or not x.is_cpu or x.is_inference():
        return x
    known = _LEAN.get(x)
    if known is None or known[0] != x._version:
        with torch.inference_mode(False), torch.no_grad():
            few = int(torch.count_nonzero(x)) <= MOSTLY_ZERO * x.numel()
            known = (x._version, SparseRows.of(x) if few else None)
        _LEAN[x] = known
    return x if known[1] is None else known[1]


def glorot(*weights: Tensor) -> None:
    """Uniform weights of Glorot and Bengio."""
    for weight in weights:
        nn.init.xavier_uniform_(weight)
