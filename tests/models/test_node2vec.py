"""Node2vec: walks follow edges, and vectors find the groups of a graph."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.random_graphs import erdos_renyi, stochastic_blocks
from wonderland.models.node2vec import Node2Vec, random_walks


def test_walks_follow_edges_in_proportion_to_weights():
    graph = Graph(erdos_renyi(9, 0.5).edges, 10)
    walks = random_walks(graph, torch.arange(10), 6)
    allowed = graph.adjacency() > 0
    allowed[9, 9] = True  # from an isolated node nothing leads away
    assert allowed[walks[:, 1:], walks[:, :-1]].all()
    weighted = Graph([(0, 1), (0, 2), (0, 3)], weight=[1.0, 0.0, 3.0])
    ends = random_walks(weighted, torch.zeros(4000, dtype=torch.long), 1)[:, 1]
    assert (ends == 2).sum() == 0
    assert float((ends == 3).float().mean()) == pytest.approx(0.75, abs=0.03)


def test_vectors_find_groups():
    torch.manual_seed(0)
    graph, group = stochastic_blocks([30, 30], 0.4, 0.01)
    model = Node2Vec(60, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        model.loss(graph, torch.arange(60)).backward()
        optimizer.step()
    z = torch.nn.functional.normalize(model(torch.arange(60)).detach(), dim=1)
    near = (z @ z.t()).fill_diagonal_(-1).argmax(1)
    assert (group[near] == group).float().mean() > 0.9


def test_a_window_that_does_not_fit():
    with pytest.raises(WonderlandError, match=r"The window of walks is between 1 and their length 3, not 5\."):
        Node2Vec(3, 2, length=3, window=5)
