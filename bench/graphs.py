"""Graph networks beside torch_geometric's, same weights, turn and turn about.

    python -m bench.graphs --data FOLDER         Cora (FOLDER/cora.npz) and a generated graph
    python -m bench.graphs --large               only the generated graph: 100,000 nodes, 1,000,000 edges, width 64
    python -m bench.graphs --memory              peak memory of a training step on it, each side in a process of its own
    python -m bench.graphs --growth              time and memory of ours from 250,000 to 2,000,000 edges
    python -m bench.graphs --bound               memory of a training step beside the bound of models.step_bytes

Outputs are compared before anything is timed. "As their examples run it" takes dense features with dropout, as
torch_geometric's gcn.py and gat.py do; ours takes the same features sparse and drops entries that are not 0.
"""

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.race import HEADER, race, setting
from wonderland.core import keep_freed_memory, peak_megabytes
from wonderland.core.graph import Graph
from wonderland.core.pattern import Pattern, SparseRows
from wonderland.core.random_graphs import random_edges
from wonderland.models.graph_memory import step_bytes
from wonderland.models.graph_net import NodeNet

NODES, EDGES, WIDTH, CLASSES = 100_000, 1_000_000, 64, 16


class Theirs(nn.Module):
    """Two layers of torch_geometric."""

    def __init__(self, kind: str, features: int, dim: int, classes: int, heads: int, dropout: float):
        super().__init__()
        from torch_geometric.nn import GATConv, GCNConv

        self.dropout, self.act = dropout, F.relu if kind == "gcn" else F.elu
        if kind == "gcn":
            self.first, self.second = GCNConv(features, dim, cached=True), GCNConv(dim, classes, cached=True)
        else:
            self.first = GATConv(features, dim // heads, heads, dropout=dropout)
            self.second = GATConv(dim, classes, 1, concat=False, dropout=dropout)

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        h = self.act(self.first(F.dropout(x, self.dropout, self.training), edges))
        return self.second(F.dropout(h, self.dropout, self.training), edges)


def copied(kind: str, ours: NodeNet, theirs: Theirs) -> None:
    """The same weights on both sides."""
    with torch.no_grad():
        for layer, other in zip(ours.layers, (theirs.first, theirs.second), strict=True):
            layer.project.weight.copy_(other.lin.weight)  # pyright: ignore
            if kind == "gat":
                layer.source.copy_(other.att_src)  # pyright: ignore
                layer.target.copy_(other.att_dst)  # pyright: ignore


def epoch(model: nn.Module, x: Any, graph: Any, y: Tensor, rows: Tensor) -> Callable[[], None]:
    """One step of training on all nodes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def run() -> None:
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, graph)[rows], y[rows]).backward()
        optimizer.step()

    return run


def pair(kind: str, features: int, dim: int, classes: int, heads: int, dropout: float) -> tuple[NodeNet, Theirs]:
    """Both networks with the same weights."""
    ours = NodeNet(
        features,
        classes,
        layer=kind,
        dim=dim,
        heads=heads,
        dropout=dropout,
        attention_dropout=dropout if kind == "gat" else 0.0,
    )
    theirs = Theirs(kind, features, dim, classes, heads, dropout)
    copied(kind, ours, theirs)
    return ours, theirs


def cora(path: Path, rounds: int) -> None:
    """One epoch on Cora: as their examples run it, and on equal dense inputs."""
    data = np.load(path)
    n, wide = int(data["num_nodes"]), int(data["num_features"])
    pattern, order = Pattern.of(
        torch.from_numpy(data["feature_row"]).long(), torch.from_numpy(data["feature_col"]).long(), n, wide
    )
    value = torch.from_numpy(data["feature_value"])[order]
    value = value / torch.zeros(n).index_add(0, pattern.row, value)[pattern.row]
    sparse, graph = SparseRows(pattern, value), Graph(torch.from_numpy(data["edge_index"]), n)
    dense, y, rows = sparse.dense(), torch.from_numpy(data["label"]), torch.from_numpy(data["train"])
    for kind, dim, heads, dropout in (("gcn", 16, 1, 0.5), ("gat", 64, 8, 0.6)):
        ours, theirs = pair(kind, wide, dim, 7, heads, dropout)
        same(ours, theirs, sparse, dense, graph)
        race(
            f"Cora, {kind}, as their examples run it",
            epoch(ours, sparse, graph, y, rows),
            epoch(theirs, dense, graph.edges, y, rows),
            rounds,
        )
        ours, theirs = pair(kind, wide, dim, 7, heads, dropout)
        race(
            f"Cora, {kind}, equal dense inputs",
            epoch(ours, dense, graph, y, rows),
            epoch(theirs, dense, graph.edges, y, rows),
            rounds,
        )


def same(ours: nn.Module, theirs: nn.Module, x: Any, dense: Tensor, graph: Graph) -> None:
    """Equal answers in evaluation mode."""
    with torch.no_grad():
        torch.testing.assert_close(ours.eval()(x, graph), theirs.eval()(dense, graph.edges), rtol=1e-3, atol=1e-4)


def generated(edges: int = EDGES) -> tuple[Graph, Tensor, Tensor, Tensor]:
    """A random graph with features, classes and training nodes."""
    nodes = edges // 10
    graph = random_edges(nodes, edges)
    torch.manual_seed(0)
    return graph, torch.randn(nodes, WIDTH), torch.randint(0, CLASSES, (nodes,)), torch.arange(nodes // 2)


def large(rounds: int) -> None:
    """One epoch on a graph of a million edges."""
    from torch_geometric.utils import to_torch_csr_tensor

    graph, x, y, rows = generated()
    for kind, heads in (("gcn", 1), ("gat", 8)):
        ours, theirs = pair(kind, WIDTH, WIDTH, CLASSES, heads, 0.0)
        same(ours, theirs, x, x, graph)
        race(
            f"1 M edges, {kind}",
            epoch(ours, x, graph, y, rows),
            epoch(theirs, x, graph.edges, y, rows),
            rounds,
            peer="edge_index",
        )
        if kind == "gcn":
            ours, theirs = pair(kind, WIDTH, WIDTH, CLASSES, heads, 0.0)
            adjacency = to_torch_csr_tensor(graph.edges.flip(0), size=(graph.nodes, graph.nodes))
            race(
                f"1 M edges, {kind}",
                epoch(ours, x, graph, y, rows),
                epoch(theirs, x, adjacency, y, rows),
                rounds,
                peer="CSR",
            )


def alone(side: str, kind: str, edges: int) -> None:
    """A few steps of one side, and what they cost."""
    from torch_geometric.utils import to_torch_csr_tensor

    graph, x, y, rows = generated(edges)
    ours, theirs = pair(kind, WIDTH, WIDTH, CLASSES, 8 if kind == "gat" else 1, 0.0)
    graph.with_loops().pattern.transposed  # noqa: B018 - sorted before it is measured, as theirs is cached
    given = (
        graph
        if side == "ours"
        else graph.edges
        if side == "theirs"
        else to_torch_csr_tensor(graph.edges.flip(0), size=(graph.nodes, graph.nodes))
    )
    step = epoch(ours if side == "ours" else theirs, x, given, y, rows)
    base, times = peak_megabytes(), []
    for _ in range(5):
        began = time.process_time()
        step()
        times.append(time.process_time() - began)
    print(f"{side} {kind} {edges} {min(times):.4f} {peak_megabytes() - base:.0f}")


BOUND = (("gcn", 1_000_000, 10_000), ("gcn", 1_000_000, 100_000), ("sage", 1_000_000, 100_000), ("gat", 1_000_000, 10_000),
         ("gat", 1_000_000, 100_000), ("gatv2", 1_000_000, 10_000), ("transformer", 1_000_000, 100_000))  # fmt: skip


def bounded(kind: str, edges: int, nodes: int) -> None:
    """Two steps on a random graph, all that is derived from it included, and the bound."""
    torch.manual_seed(0)
    pairs, x, y = torch.randint(0, nodes, (2, edges)), torch.randn(nodes, WIDTH), torch.randint(0, CLASSES, (nodes,))
    heads = 8 if kind.startswith("gat") else 1
    net = NodeNet(WIDTH, CLASSES, layer=kind, dim=WIDTH, heads=heads, dropout=0.5)
    epoch(net, x[:100], Graph([(0, 1)], 100), y[:100], torch.arange(100))()
    base = peak_megabytes()
    step = epoch(net, x, Graph(pairs, nodes), y, torch.arange(nodes))
    step()
    step()
    allowed = step_bytes(nodes, edges, [WIDTH, WIDTH, CLASSES], heads=heads, messages=kind in ("gatv2", "transformer"))
    print(
        f"| {kind}, {edges:,} edges, {nodes:,} nodes | {peak_megabytes() - base:.0f} MiB | {allowed / 2**20:.0f} MiB |"
    )


def apart(side: str, kind: str, edges: int = EDGES) -> tuple[float, float]:
    """Seconds and MiB of one side in a process of its own."""
    words = [sys.executable, "-W", "ignore", "-m", "bench.graphs", "--alone", side, kind, str(edges)]
    done = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return float(done[-2]), float(done[-1])


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder that holds cora.npz")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    for flag in ("--large", "--memory", "--growth", "--bound"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--alone", nargs=3)
    parser.add_argument("--bounded", nargs=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.alone:
        keep_freed_memory()
        torch.set_num_threads(given.threads)
        return alone(given.alone[0], given.alone[1], int(given.alone[2]))
    if given.bounded:
        return bounded(given.bounded[0], int(given.bounded[1]), int(given.bounded[2]))
    if given.bound:
        print("| step | measured | allowed |\n|---|---|---|", flush=True)
        for case in BOUND:
            subprocess.run(
                [sys.executable, "-W", "ignore", "-m", "bench.graphs", "--bounded", *map(str, case)], check=True
            )
        return None
    if given.memory:
        for kind, peers in (("gcn", ("theirs", "csr")), ("gat", ("theirs",))):
            mine = apart("ours", kind)
            for peer in peers:
                other = apart(peer, kind)
                print(
                    f"{kind} beside {peer}: {mine[1]:.0f} MiB and {other[1]:.0f} MiB, {mine[1] / other[1]:.2f} of theirs"
                )
        return None
    if given.growth:
        for kind in ("gcn", "gat"):
            for edges in (250_000, 500_000, 1_000_000, 2_000_000):
                seconds, mib = apart("ours", kind, edges)
                print(
                    f"{kind}, {edges:,} edges: {1e6 * seconds / edges * 1e3:.1f} ns and {mib * 2**20 / edges:.0f} bytes an edge"
                )
        return None
    print(setting(given.threads, True, given.rounds))
    print(HEADER)
    if given.data and not given.large:
        cora(given.data / "cora.npz", given.rounds)
    large(given.rounds)
    return None


if __name__ == "__main__":
    main()
