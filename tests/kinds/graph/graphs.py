"""Small graphs on disk for tests."""

from pathlib import Path

import numpy as np
import pandas as pd

from wonderland.core.random_graphs import erdos_renyi, stochastic_blocks


def node_folder(folder: Path, *, seed: int = 0, size: int = 40, number: bool = False) -> Path:
    """Two groups of nodes with a column that hints at the group."""
    folder.mkdir(parents=True, exist_ok=True)
    graph, group = stochastic_blocks([size, size], 0.2, 0.02, seed=seed)
    draw = np.random.default_rng(seed)
    codes = group.numpy()
    nodes = pd.DataFrame(
        {
            "id": [f"n{i}" for i in range(2 * size)],
            "age": (codes + draw.normal(size=2 * size)).round(3),
            "town": draw.choice(["north", "south"], 2 * size),
            "label": (codes * 2.0 + draw.normal(size=2 * size)).round(3)
            if number
            else np.array(["red", "blue"])[codes],
        }
    )
    nodes.to_csv(folder / "nodes.csv", index=False)
    ends = graph.edges[:, graph.edges[0] < graph.edges[1]].numpy()
    pd.DataFrame({"source": [f"n{i}" for i in ends[0]], "target": [f"n{i}" for i in ends[1]]}).to_csv(
        folder / "edges.csv", index=False
    )
    return folder


def graph_folder(folder: Path, *, seed: int = 0, count: int = 60) -> Path:
    """Sparse and dense graphs, with edges of two kinds."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    nodes, edges, graphs = [], [], []
    for number in range(count):
        dense = number % 2
        size = int(draw.integers(5, 9))
        graph = erdos_renyi(size, 0.8 if dense else 0.25, seed=seed * 1000 + number)
        graphs.append({"id": f"g{number}", "label": "dense" if dense else "sparse"})
        nodes += [
            {"id": f"{number}-{i}", "graph": f"g{number}", "kind": "ab"[int(draw.integers(2))]} for i in range(size)
        ]
        for a, b in graph.edges.t().tolist():
            if a < b:
                edges.append(
                    {"source": f"{number}-{a}", "target": f"{number}-{b}", "bond": "xy"[int(draw.integers(2))]}
                )
    for name, rows in (("nodes", nodes), ("edges", edges), ("graphs", graphs)):
        pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
    return folder


def link_folder(folder: Path, *, seed: int = 0) -> Path:
    """Edges alone."""
    folder.mkdir(parents=True, exist_ok=True)
    graph, _ = stochastic_blocks([25, 25], 0.3, 0.01, seed=seed)
    ends = graph.edges[:, graph.edges[0] < graph.edges[1]].numpy()
    pd.DataFrame({"from": ends[0], "to": ends[1]}).to_csv(folder / "edges.csv", index=False)
    return folder
