"""Two groups of a graph from one known member each; how deep stacks make all nodes alike; graphs that only random walks tell apart."""

import sys

import torch
import torch.nn.functional as F

from examples.lab import Claim, above, below, lines, run, table
from wonderland.core.graph import Graph
from wonderland.core.random_graphs import stochastic_blocks
from wonderland.models.graph_net import NodeNet
from wonderland.nn.graph import GraphConvolution, PairNorm, Readout, random_walk_encoding

DEPTH = 32


def from_two(seed: int = 0) -> float:
    """A GCN without features learns both groups of 34 nodes from one label each; the share of right answers on the others."""
    graph, group = stochastic_blocks([17, 17], 0.35, 0.03, seed=seed)
    torch.manual_seed(seed)
    model, x = NodeNet(34, 2, dim=16, dropout=0.0), torch.eye(34)
    optimizer, known = torch.optim.Adam(model.parameters(), lr=0.01), torch.tensor([0, 33])
    for _ in range(100):
        optimizer.zero_grad()
        F.cross_entropy(model(x, graph)[known], group[known]).backward()
        optimizer.step()
    others = torch.arange(1, 33)
    return float((model(x, graph).argmax(1) == group).float()[others].mean())


def smoothness(norm: bool, seed: int = 0) -> list[float]:
    """The mean cosine between nodes after each of 32 graph convolutions with random weights."""
    graph, _ = stochastic_blocks([30, 30], 0.3, 0.05, seed=seed)
    torch.manual_seed(seed)
    x, kept = torch.randn(60, 16), PairNorm()
    curve = []
    with torch.no_grad():
        for _ in range(DEPTH):
            x = torch.tanh(GraphConvolution(16, 16)(x, graph))
            x = kept(x, graph) if norm else x
            unit = F.normalize(x, dim=1)
            curve.append(float((unit @ unit.t()).mean()))
    return curve


def alike() -> tuple[float, float]:
    """How far a hexagon is from two triangles: by a stack of convolutions on equal features, and by random walks."""
    hexagon = Graph.undirected([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)])
    triangles = Graph.undirected([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    torch.manual_seed(0)
    model, read = NodeNet(1, 8, layer="gin", dim=8, depth=3, dropout=0.0).eval(), Readout(["sum"])
    with torch.no_grad():
        by_messages = [read(model(torch.ones(6, 1), graph), graph) for graph in (hexagon, triangles)]
    by_walks = [random_walk_encoding(graph, 6).sum(0) for graph in (hexagon, triangles)]
    return tuple(float((a - b).abs().max()) for a, b in (by_messages, by_walks))  # pyright: ignore


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    """Three small experiments."""
    right = sum(from_two(seed) for seed in range(3)) / 3
    plain, kept = smoothness(False), smoothness(True)
    messages, walks = alike()
    rows = [
        ("right answers from one label a group", f"{right:.3f}"),
        (f"cosine between nodes after {DEPTH} layers", f"{plain[-1]:.3f}"),
        ("the same with PairNorm", f"{kept[-1]:.3f}"),
        ("hexagon and triangles apart, by messages", f"{messages:.1e}"),
        ("hexagon and triangles apart, by random walks", f"{walks:.2f}"),
    ]
    claims = [
        above("right answers from one label a group", right, 0.9),
        above("cosine between nodes after 32 layers", plain[-1], 0.9),
        below("cosine with PairNorm", abs(kept[-1]), 0.2),
        below("messages see no difference", messages, 1e-4),
        above("random walks do", walks, 0.5),
    ]
    steps = list(range(1, DEPTH + 1))
    curves = {"plain": list(zip(steps, plain, strict=True)), "PairNorm": list(zip(steps, kept, strict=True))}
    picture = lines(curves, title="Nodes become alike", x_label="layers", y_label="mean cosine")
    return claims, table(("", ""), rows), {"smoothness": picture}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("graphs", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
