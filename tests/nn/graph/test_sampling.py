"""Parts of a large graph: what is exact, what is right on average, and what is refused."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.random_graphs import erdos_renyi, path, stochastic_blocks
from wonderland.models import graph_net
from wonderland.models.graph_net import NodeNet
from wonderland.nn import graph as g
from wonderland.nn.graph.sampling import breadth_first, clusters, in_blocks, induced, sample_neighbours

D = 4
LAYERS = {
    "convolution": (lambda: g.GraphConvolution(D, 3), False),
    "row": (lambda: g.GraphConvolution(D, 3, norm="row"), False),
    "sage": (lambda: g.GraphSAGE(D, 3), False),
    "sage max": (lambda: g.GraphSAGE(D, 3, reduce="max"), False),
    "gat": (lambda: g.GAT(D, 3, heads=2, edge_dim=2), True),
    "gat v2": (lambda: g.GATv2(D, 3, edge_dim=2), True),
    "gine": (lambda: g.GINE(D, 3, edge_dim=2), True),
    "attention": (lambda: g.EdgeAttention(D, 3, edge_dim=2), True),
    "pna": (lambda: g.PNA(D, 3, degrees=[0, 1, 2], edge_dim=2), True),
}


def weighted_graph() -> Graph:
    """Edges in no order, with weights, two loops, and two isolated nodes."""
    torch.manual_seed(0)
    plain = erdos_renyi(30, 0.15).edges
    edges = torch.cat([plain[:, torch.randperm(plain.shape[1])], torch.tensor([[3, 5], [3, 5]])], 1)
    return Graph(edges, 32, weight=torch.rand(edges.shape[1]).double())


@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_blocks_are_the_layers(name):
    graph, (make, edges) = weighted_graph(), LAYERS[name]
    layer = make().double().eval()
    x, edge = torch.randn(32, D).double(), torch.randn(graph.edges.shape[1], 2).double()
    given = (edge,) if edges else ()
    torch.testing.assert_close(in_blocks(layer, x, graph, *given, size=7), layer(x, graph, *given))


def test_samples_are_right_on_average_and_the_same_for_the_same_seed():
    graph, x = weighted_graph(), torch.randn(32, D).double()
    layer, asked = g.GraphConvolution(D, 3).double(), torch.arange(6)
    made = []
    with torch.no_grad():
        for seed in range(800):
            part = sample_neighbours(graph, asked, [2], torch.Generator().manual_seed(seed))
            assert int(torch.bincount(part.graph.without_loops().edges[1]).max()) <= 2
            made.append(layer(part.rows(x), part.graph)[: part.asked])
        error = (torch.stack(made).mean(0) - layer(x, graph)[:6]).abs() / (torch.stack(made).std(0) / 800**0.5 + 1e-9)
    assert float(error.max()) < 5
    first, second = (sample_neighbours(graph, asked, [2, 2], torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first.edges, second.edges)
    assert torch.equal(graph.edges[:, first.edges], first.nodes[first.graph.edges])


def test_a_batch_of_two_hops_gives_its_nodes_what_the_whole_graph_does():
    graph, x = weighted_graph(), torch.randn(32, 5)
    graph = Graph(graph.edges, 32)
    net = NodeNet(5, 3, layer="sage").eval()
    part = sample_neighbours(graph, torch.tensor([4, 9]), [None, None])
    torch.testing.assert_close(net(part.rows(x), part.graph)[:2], net(x, graph)[[4, 9]])
    sparse = part.rows(g.SparseRows.of(x))
    assert torch.equal(sparse.dense(), x[part.nodes])


def test_networks_answer_in_blocks_where_messages_are_many(monkeypatch):
    graph, x = erdos_renyi(40, 0.3), torch.randn(40, 6)
    net = NodeNet(6, 3, layer="gatv2", dim=8).eval()
    whole = net(x, graph)
    monkeypatch.setattr(graph_net, "MOST_MESSAGES", 500)
    with torch.no_grad():
        torch.testing.assert_close(net(x, graph), whole)


def test_clusters_hold_what_belongs_together():
    graph, _ = stochastic_blocks([40] * 5, 0.4, 0.01, seed=3)
    label = clusters(graph, 5)
    inside = (label[graph.edges[0]] == label[graph.edges[1]]).float().mean()
    by_chance = (torch.randint(0, 5, (200,))[graph.edges] == 0).float().mean()
    assert float(inside) > 0.6 > float(by_chance)
    sizes = torch.bincount(label, minlength=5)
    assert int(sizes.min()) >= 0.7 * 40
    assert int(sizes.max()) <= 1.3 * 40
    assert sorted(breadth_first(path(300)).tolist()) == list(range(300))
    assert breadth_first(path(5)).tolist() == list(range(5))
    assert clusters(Graph([], 6), 3).tolist() == [0, 0, 1, 1, 2, 2]
    part = induced(graph, (label == 2).nonzero()[:, 0])
    assert torch.equal(part.graph.degree, part.graph.degree_with(False, torch.float32))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sample_neighbours(path(3), torch.tensor([1, 1]), [2]), "Neighbours are sampled for nodes that are named once each."),
        (lambda: clusters(path(3), 4), "A graph of 3 nodes is cut into 1 to 3 clusters, not 4."),
        (lambda: in_blocks(g.GIN(2, 2), torch.ones(2, 2), Graph.batch([path(1), path(1)])), "in_blocks takes one graph; a batch of many is cut into smaller batches instead."),
    ],
)  # fmt: skip
def test_faults_are_named(make, words):
    with pytest.raises(WonderlandError) as error:
        make()
    assert str(error.value) == words
