"""The karate club from one known member of each side; deep stacks that make all nodes alike; graphs that only random walks tell apart."""

import sys

import torch
import torch.nn.functional as F

from examples.lab import Claim, above, below, lines, run, table
from wonderland.core import need
from wonderland.core.graph import Graph
from wonderland.core.random_graphs import circle, stochastic_blocks
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


def karate(seed: int = 0) -> float:
    """The share of the other 32 members of Zachary's karate club whose side a GCN without features finds from the two leaders."""
    networkx = need("networkx", extra="graphs", why="for the karate club")
    club = networkx.karate_club_graph()
    graph = Graph(Graph.from_networkx(club).edges, 34)
    side = torch.tensor([club.nodes[node]["club"] == "Officer" for node in club]).long()
    torch.manual_seed(seed)
    model, x, known = NodeNet(34, 2, dim=16, dropout=0.0), torch.eye(34), torch.tensor([0, 33])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(100):
        optimizer.zero_grad()
        F.cross_entropy(model(x, graph)[known], side[known]).backward()
        optimizer.step()
    return float((model(x, graph).argmax(1) == side).float()[1:33].mean())


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


def skip_links(nodes: int, skip: int) -> Graph:
    """A circle whose nodes are also joined to those some places further on."""
    around = torch.arange(nodes)
    pairs = [torch.stack([around, (around + step) % nodes]) for step in (1, skip)]
    return Graph.undirected(torch.cat(pairs, 1), nodes)


def look_alikes() -> dict[str, tuple[Graph, Graph]]:
    """Pairs of different graphs that the Weisfeiler-Lehman test takes for one."""
    two = Graph.undirected([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    squares = Graph.undirected([(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)])
    hexagons = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (4, 6), (6, 7), (7, 8), (8, 9), (9, 5)]
    pentagons = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 5), (5, 6), (6, 7), (7, 8), (8, 9), (9, 5)]
    return {
        "hexagon, two triangles": (circle(6), two),
        "octagon, two squares": (circle(8), squares),
        "decalin, bicyclopentyl": (Graph.undirected(hexagons), Graph.undirected(pentagons)),
        "circles of 11 with skips of 2, of 3": (skip_links(11, 2), skip_links(11, 3)),
    }


def apart(first: Graph, second: Graph) -> tuple[float, float]:
    """How far two graphs are apart: by a stack of convolutions on equal features, and by random walks of up to eight steps."""
    torch.manual_seed(0)
    model, read = NodeNet(1, 8, layer="gin", dim=8, depth=3, dropout=0.0).eval(), Readout(["mean"])
    with torch.no_grad():
        by_messages = [read(model(torch.ones(graph.nodes, 1), graph), graph) for graph in (first, second)]
    by_walks = [random_walk_encoding(graph, 8).mean(0) for graph in (first, second)]
    return tuple(float((a - b).abs().max()) for a, b in (by_messages, by_walks))  # pyright: ignore


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    """Four small experiments."""
    right = sum(from_two(seed) for seed in range(3)) / 3
    club = sum(karate(seed) for seed in range(3)) / 3
    plain, kept = smoothness(False), smoothness(True)
    pairs = {name: apart(*both) for name, both in look_alikes().items()}
    messages, walks = max(by[0] for by in pairs.values()), min(by[1] for by in pairs.values())
    rows = [
        ("karate club: right answers from the two leaders", f"{club:.3f}"),
        ("right answers from one label a group", f"{right:.3f}"),
        (f"cosine between nodes after {DEPTH} layers", f"{plain[-1]:.3f}"),
        ("the same with PairNorm", f"{kept[-1]:.3f}"),
        *((f"{name}: apart by messages, by random walks", f"{m:.1e}, {w:.3f}") for name, (m, w) in pairs.items()),
    ]
    claims = [
        above("right answers in the karate club", club, 0.9),
        above("right answers from one label a group", right, 0.9),
        above("cosine between nodes after 32 layers", plain[-1], 0.9),
        below("cosine with PairNorm", abs(kept[-1]), 0.2),
        below("messages see no difference in any pair", messages, 1e-5),
        above("random walks do in every pair", walks, 0.003),
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
