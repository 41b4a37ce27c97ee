"""Networks of graphs: what they answer for, what they keep to, and that their specs survive JSON."""

import pytest
import torch

from wonderland.core import GraphInput, Spec, WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.random_graphs import erdos_renyi
from wonderland.models.graph_net import LAYERS, GraphNet, GraphStack, LinkNet, NodeNet, WholeGraphNet
from wonderland.nn.graph import Readout


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_makes_a_network_of_nodes(layer):
    graph, x = erdos_renyi(9, 0.4), torch.randn(9, 5)
    net = NodeNet(5, 3, layer=layer, dim=8, heads=2, residual=layer == "sage").eval()
    order = torch.randperm(9)
    torch.testing.assert_close(net(x[order], graph.permuted(order)), net(x, graph)[order], rtol=1e-4, atol=1e-5)
    given = GraphInput(graph, x, rows=torch.tensor([4, 1]))
    torch.testing.assert_close(net(given), net(x, graph)[[4, 1]])


@pytest.mark.parametrize("virtual", [False, True])
def test_networks_of_whole_graphs_do_not_mix_them(virtual):
    graphs = [erdos_renyi(5, 0.5), Graph([], 1), erdos_renyi(7, 0.3)]
    xs = [torch.randn(graph.nodes, 4) for graph in graphs]
    net = WholeGraphNet(4, 2, virtual=virtual, residual=virtual, readout=["sum", "max"]).eval()
    whole = net(torch.cat(xs), Graph.batch(graphs))
    alone = torch.cat([net(x, graph) for x, graph in zip(xs, graphs, strict=True)])
    torch.testing.assert_close(whole, alone, rtol=1e-4, atol=1e-5)
    assert Readout(["sum"])(xs[0], graphs[0]).shape == (1, 4)
    assert GraphStack(4, 8).eval()(xs[0], graphs[0]).shape == (5, 8)


def test_links_without_direction_are_symmetric():
    graph, x = erdos_renyi(6, 0.5), torch.randn(6, 4)
    pairs = torch.tensor([[0, 1], [2, 5]])
    net = LinkNet(4, 2).eval()
    torch.testing.assert_close(net(x, graph, pairs), net(x, graph, pairs.flip(1)))
    directed = LinkNet(4, 2, directed=True, pair_dim=1).eval()
    given = GraphInput(graph, x, rows=pairs, pair=torch.ones(2, 1))
    assert not torch.allclose(
        directed(given), directed(GraphInput(graph, x, rows=pairs.flip(1), pair=torch.ones(2, 1)))
    )


def test_members_answer_side_by_side_and_specs_survive_json():
    spec = GraphNet.spec(features=4, outputs=3, nets=[NodeNet.spec(), NodeNet.spec(layer="mlp")])
    net = Spec.from_json(spec.to_json()).build().eval()
    given = GraphInput(Graph([(0, 1)]), torch.randn(2, 4), rows=torch.tensor([0, 1]))
    assert net(given).shape == (2, 2, 3)
    assert net.members == 2
    assert [len(piece) for piece in given.split(2)] == [1, 1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: NodeNet(3, 2, layer="gnn"), "There is no graph layer 'gnn'. Known are gcn, gat, gatv2, sage, gin, transformer, appnp, mlp."),
        (lambda: NodeNet(3, 2, depth=0), "A network has at least one layer, not 0."),
        (lambda: NodeNet(3, 2, dim=10, heads=4), "A width of 10 cannot be cut into 4 heads."),
        (lambda: GraphNet(3, 2, nets=[]), "GraphNet needs at least one network."),
        (lambda: GraphNet(3, 2, nets=[GraphNet.spec()]), "GraphNet holds specs of NodeNet, LinkNet, WholeGraphNet, MPNN, not models.GraphNet."),
        (lambda: GraphInput(Graph([], 2), torch.ones(2, 1)).split(2), "A batch of graphs is not cut: take a smaller batch in place of accumulate."),
    ],
)  # fmt: skip
def test_faults_are_named(make, words):
    with pytest.raises(WonderlandError) as error:
        make()
    assert str(error.value) == words
