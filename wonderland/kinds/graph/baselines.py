"""Honest baselines: what simple methods reach on the same parts, to stand beside the model in the report."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core.graph import Graph
from wonderland.core.pattern import Pattern, SparseRows
from wonderland.kinds.graph.features import beside
from wonderland.nn.graph.propagation import label_propagation
from wonderland.ops.sparse_product import sparse_product

STEPS = 150
LARGEST = 50_000  # nodes, for baselines that learn
ROUNDS = 3


def node_baselines(examples: Any, parts: Any, classes: int | None) -> list[dict[str, Any]]:
    """Most frequent class or mean, label propagation, linear models and an MLP: score on the test part of each."""
    y, rows, graph = torch.as_tensor(examples.y), torch.as_tensor(examples.asked), examples.graph
    train, test = torch.as_tensor(parts.train), torch.as_tensor(parts.parts["test"])
    baselines = [_constant(y, train, test, classes)]
    if classes is not None:
        known = torch.full((graph.nodes,), -1, dtype=torch.long)
        known[rows[train]] = y[train]
        spread = label_propagation(known, graph, classes)[rows[test]]
        baselines.append(_scored("label propagation", spread.argmax(1), y[test], classes))
    if graph.nodes <= LARGEST:
        x = examples.features
        baselines.append(_learned("linear model of the node's columns", x, rows, y, train, test, classes, 0))
        baselines.append(
            _learned(
                "linear model of its neighbours (adjacency)",
                beside_adjacency(x, graph),
                rows,
                y,
                train,
                test,
                classes,
                0,
            )
        )
        baselines.append(_learned("MLP of the node's columns", x, rows, y, train, test, classes, 64))
    return baselines


def graph_baselines(examples: Any, parts: Any, classes: int | None) -> list[dict[str, Any]]:
    """Most frequent class or mean, the mean of the nodes' columns, and subtrees counted as by Weisfeiler and Lehman."""
    y, rows, graph = torch.as_tensor(examples.y), torch.as_tensor(examples.asked), examples.graph
    train, test = torch.as_tensor(parts.train), torch.as_tensor(parts.parts["test"])
    x = examples.features.dense() if isinstance(examples.features, SparseRows) else examples.features
    total = torch.zeros(graph.graphs, x.shape[1]).index_add(0, graph.node_graph, x)
    counts = torch.cat([total, graph.sizes[:, None].float()], 1)
    spread = counts[rows[train]].std(0).clamp(min=1e-6)
    counts = (counts - counts[rows[train]].mean(0)) / spread
    baselines = [_constant(y, train, test, classes)]
    baselines.append(
        _learned("linear model of sums over nodes", counts.clamp(-10, 10), rows, y, train, test, classes, 0)
    )
    baselines.append(_learned("Weisfeiler-Lehman subtrees", subtree_counts(graph, x), rows, y, train, test, classes, 0))
    return baselines


def link_baselines(examples: Any, parts: Any) -> list[dict[str, Any]]:
    """Common neighbours, Adamic-Adar, resource allocation and degrees, each with the threshold that is best on the training part."""
    y = np.asarray(examples.y)
    train, test = parts.train, parts.parts["test"]
    baselines = [_constant(torch.as_tensor(y), torch.as_tensor(train), torch.as_tensor(test), 2)]
    if set(np.unique(y)) <= {0, 1}:
        names = ("common neighbours", "Adamic-Adar", "resource allocation", "Jaccard", "product of degrees")
        scores = examples.pair.numpy()
        for k, name in enumerate(names):
            cuts = np.unique(np.quantile(scores[train, k], np.linspace(0, 1, 51)))
            best = max(cuts, key=lambda cut: float(((scores[train, k] > cut) == y[train]).mean()))
            baselines.append(
                {"name": name, "measure": "accuracy", "value": float(((scores[test, k] > best) == y[test]).mean())}
            )
    return baselines


def subtree_counts(graph: Graph, x: Tensor, rounds: int = ROUNDS) -> SparseRows:
    """How often each coloured subtree occurs in each graph, up to a depth: colours are refined by those of the neighbours."""
    colour = torch.unique(x.round(decimals=3), dim=0, return_inverse=True)[1]
    pieces, shift = [], 0
    source, target = graph.edges
    for _ in range(rounds + 1):
        pieces.append((graph.node_graph, colour + shift))
        shift += int(colour.max()) + 1 if len(colour) else 0
        # A multiset of colours as a sum of random numbers, one for each colour: equal multisets have equal sums.
        draw = torch.rand(shift, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        near = torch.zeros(graph.nodes, 2, dtype=torch.float64).index_add(0, target, draw[colour[source]])
        key = torch.cat([colour[:, None].double(), near.round(decimals=9)], 1)
        colour = torch.unique(key, dim=0, return_inverse=True)[1]
    row, column = (torch.cat([piece[i] for piece in pieces]) for i in (0, 1))
    pattern, _ = Pattern.of(row, column, graph.graphs, max(1, shift))
    value = torch.ones(len(pattern))
    size = torch.zeros(graph.graphs).index_add(0, pattern.row, value).clamp(min=1).sqrt()
    return SparseRows(pattern, value / size[pattern.row])


def beside_adjacency(x: Tensor | SparseRows, graph: Graph) -> Tensor | SparseRows:
    """The node's columns, and which nodes are its neighbours."""
    pattern, value = graph.normalised("row", dtype=torch.float32)
    return beside(x if isinstance(x, SparseRows) else SparseRows.of(x), SparseRows(pattern, value))


def _constant(y: Tensor, train: Tensor, test: Tensor, classes: int | None) -> dict[str, Any]:
    if classes is None:
        return _scored("mean of the training part", y[train].mean().expand(len(test)), y[test], None)
    common = torch.bincount(y[train], minlength=classes).argmax()
    return _scored("most frequent class", common.expand(len(test)), y[test], classes)


def _scored(name: str, predicted: Tensor, y: Tensor, classes: int | None) -> dict[str, Any]:
    if classes is not None:
        return {"name": name, "measure": "accuracy", "value": float((predicted == y).double().mean())}
    return {"name": name, "measure": "rmse", "value": float((predicted - y).double().square().mean().sqrt())}


def _learned(
    name: str, x: Any, rows: Tensor, y: Tensor, train: Tensor, test: Tensor, classes: int | None, hidden: int
) -> dict[str, Any]:
    """A linear model, or an MLP, trained on all training rows at once."""
    generator = torch.Generator().manual_seed(0)
    wide = x.shape[1]

    def matrix(a: int, b: int) -> Tensor:
        return ((torch.rand(a, b, generator=generator) * 2 - 1) * (6 / (a + b)) ** 0.5).requires_grad_()

    outputs = classes or 1
    weights = (
        [matrix(wide, hidden), matrix(hidden, outputs)] if hidden else [torch.zeros(wide, outputs, requires_grad=True)]
    )
    biases = [torch.zeros(weight.shape[1], requires_grad=True) for weight in weights]
    times: Callable[[Tensor], Tensor] = (
        (lambda weight: sparse_product(x.pattern, x.value, weight))
        if isinstance(x, SparseRows)
        else (lambda weight: x @ weight)
    )
    mean, scale = (0.0, 1.0) if classes is not None else (float(y[train].mean()), float(y[train].std()) or 1.0)

    def answers() -> Tensor:
        h = times(weights[0]) + biases[0]
        return (F.relu(h) @ weights[1] + biases[1] if hidden else h)[rows]

    optimizer = torch.optim.Adam([*weights, *biases], lr=0.05 if not hidden else 0.01, weight_decay=5e-4)
    with torch.enable_grad(), torch.inference_mode(False):
        for _ in range(STEPS):
            optimizer.zero_grad()
            out = answers()[train]
            loss = (
                F.cross_entropy(out, y[train])
                if classes
                else F.mse_loss(out[:, 0], ((y[train] - mean) / scale).float())
            )
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        out = answers()[test]
    predicted = out.argmax(1) if classes else out[:, 0].double() * scale + mean
    return _scored(name, predicted, y[test], classes)
