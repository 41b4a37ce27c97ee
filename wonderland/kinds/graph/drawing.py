"""A drawing of a part of the graph: where nodes stand, what class they are, and which of them are mistakes."""

from typing import Any

import numpy as np
import torch

from wonderland.core.graph import Graph
from wonderland.kinds.graph.insight import along

MOST = 220
ROUNDS = 120


def drawing(run: Any, plan: Any, shares: tuple[Graph, torch.Tensor] | None = None) -> dict[str, Any]:
    """Places, classes, mistakes and edges of up to 220 nodes around the node with the most neighbours; edges with their attention."""
    dataset, examples = plan.dataset, plan.examples
    graph = examples.graph
    nodes = chosen(graph)
    inner, _ = graph.subgraph(nodes)
    place = force_layout(inner)
    codes = np.full(graph.nodes, -1, np.int64)
    wrong = np.zeros(graph.nodes, bool)
    names: list[str] = []
    if dataset.of == "nodes" and dataset.classes is not None:
        codes[dataset.rows] = dataset.y
        names = dataset.classes
        test = plan.parts.parts["test"]
        view = plan.view(run.model, "test")
        predicted = plan.task.combined(view.outputs().cpu(), run.trust).argmax(1)
        wrong[dataset.rows[test[predicted != dataset.y[test]]]] = True
    source, target = inner.edges.numpy()
    once = source < target
    edges = np.stack([source[once], target[once]], 1).tolist()
    return {
        "attention": [] if shares is None else along(edges, nodes, *shares),
        "places": place.round(3).tolist(),
        "names": [dataset.ids[i] for i in nodes.tolist()],
        "classes": codes[nodes.numpy()].tolist(),
        "class_names": names,
        "wrong": wrong[nodes.numpy()].tolist(),
        "edges": edges,
        "all": graph.nodes,
    }


def chosen(graph: Graph) -> torch.Tensor:
    """All nodes of a small graph; of a large one those nearest to the node with the most neighbours."""
    if graph.nodes <= MOST:
        return torch.arange(graph.nodes)
    degree = torch.bincount(graph.edges[1], minlength=graph.nodes)
    seen = torch.zeros(graph.nodes, dtype=torch.bool)
    kept = [int(degree.argmax())]
    seen[kept[0]] = True
    for node in kept:
        near = graph.pattern.column[int(graph.pattern.start[node]) : int(graph.pattern.start[node + 1])]
        for other in near.tolist():
            if not seen[other] and len(kept) < MOST:
                seen[other] = True
                kept.append(other)
        if len(kept) >= MOST:
            break
    return torch.tensor(kept)


def force_layout(graph: Graph, seed: int = 0) -> np.ndarray:
    """Nodes push each other away and edges draw them together, cooling down (Fruchterman and Reingold): (n, 2) in [0, 1]."""
    n = graph.nodes
    place = np.random.Generator(np.random.Philox(seed)).random((n, 2))
    ideal = (1 / max(1, n)) ** 0.5
    source, target = graph.edges.numpy()
    for step in range(ROUNDS):
        gap = place[:, None] - place[None]
        squared = np.maximum((gap**2).sum(-1), 1e-6)
        move = (gap * (ideal**2 / squared)[..., None]).sum(1)
        pull = place[source] - place[target]
        size = np.sqrt(np.maximum((pull**2).sum(-1, keepdims=True), 1e-9))
        np.add.at(move, target, pull * size / ideal / 2)
        np.add.at(move, source, -pull * size / ideal / 2)
        move -= 0.3 * (place - place.mean(0))  # what is joined to nothing stays near
        length = np.sqrt((move**2).sum(1, keepdims=True)) + 1e-9
        place = place + move / length * np.minimum(length, 0.12 * (1 - step / ROUNDS) + 0.002)
    low, high = place.min(0), place.max(0)
    return (place - low) / np.maximum(high - low, 1e-9)
