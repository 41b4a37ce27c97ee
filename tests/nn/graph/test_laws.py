"""Laws of graph layers: order of nodes, locality, batches, isolated nodes, empty graphs, sparse features, odd graphs."""

import pytest
import torch

import wonderland
from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.random_graphs import erdos_renyi, path
from wonderland.laws import Example
from wonderland.nn import graph as g
from wonderland.nn.graph import SparseRows
from wonderland.nn.graph.layer import check, lean

D, OUT, E = 4, 4, 2
CLAIMED = ["graph_permutation", "graph_locality", "graph_batching", "graph_edge_cases"]
LAYERS = {
    "convolution": (lambda: g.GraphConvolution(D, OUT), 1, False),
    "row": (lambda: g.GraphConvolution(D, OUT, norm="row", bias_inside=True), 1, False),
    "neighbour": (lambda: g.NeighbourConvolution(D, OUT), 1, False),
    "chebyshev": (lambda: g.Chebyshev(D, OUT, order=3), 2, False),
    "polynomial": (lambda: g.PolynomialConvolution(D, OUT, order=2), 2, False),
    "propagation": (lambda: g.PersonalisedPropagation(2), 2, False),
    "sage": (lambda: g.GraphSAGE(D, OUT), 1, False),
    "sage max": (lambda: g.GraphSAGE(D, OUT, reduce="max"), 1, False),
    "gat": (lambda: g.GAT(D, 2, heads=2), 1, False),
    "gat edges": (lambda: g.GAT(D, 2, heads=2, edge_dim=E), 1, True),
    "gat v2": (lambda: g.GATv2(D, 2, heads=2, edge_dim=E), 1, True),
    "gin": (lambda: g.GIN(D, OUT), 1, False),
    "gine": (lambda: g.GINE(D, OUT, edge_dim=E), 1, True),
    "gated": (lambda: g.GatedGraph(D, steps=2), 2, False),
    "messages": (lambda: g.MessagePassing(D, OUT, edge_dim=E), 1, True),
    "edge network": (lambda: g.EdgeNetwork(D, OUT, edge_dim=E), 1, True),
    "pna": (lambda: g.PNA(D, OUT, degrees=[0, 2, 3], edge_dim=E), 1, True),
    "edge attention": (lambda: g.EdgeAttention(D, 2, heads=2, edge_dim=E), 1, True),
    "degree": (lambda: g.DegreeEmbedding(D), 1, False),
    "node attention": (lambda: g.NodeAttention(D, heads=2), None, False),
    "gps": (lambda: g.GPS(D, local=g.GINE(D, D, edge_dim=E), heads=2), None, True),
    "graph norm": (lambda: g.GraphNorm(D), None, False),
    "pair norm": (lambda: g.PairNorm(), None, False),
    "implicit": (lambda: g.ImplicitGraph(D, OUT), None, False),
}  # fmt: skip
READOUTS = {
    "sum, mean, max, min": lambda: g.Readout(["sum", "mean", "max", "min"]),
    "attention": lambda: g.AttentionReadout(D),
    "set2set": lambda: g.Set2Set(D),
}


def made(name):
    torch.manual_seed(0)
    make, hops, edges = LAYERS[name]
    return make().double().eval(), hops, edges


def call(layer, x, graph, edge, wants_edges):
    return layer(x, graph, edge) if wants_edges else layer(x, graph)


def random_graph(nodes=9, seed=0):
    graph = erdos_renyi(nodes - 1, 0.4, seed=seed)
    graph = Graph(graph.edges, nodes)  # the last node is isolated
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, D, generator=draw, dtype=torch.float64)
    return graph, x, torch.randn(graph.edges.shape[1], E, generator=draw, dtype=torch.float64)


@pytest.mark.parametrize("name", LAYERS)
def test_the_order_of_nodes_and_edges_does_not_matter(name):
    layer, _, edges = made(name)
    graph, x, edge = random_graph()
    order, shuffled = torch.randperm(graph.nodes), torch.randperm(graph.edges.shape[1])
    moved = graph.permuted(order)
    moved = Graph(moved.edges[:, shuffled], moved.nodes)
    y, z = call(layer, x, graph, edge, edges), call(layer, x[order], moved, edge[shuffled], edges)
    torch.testing.assert_close(z, y[order])


@pytest.mark.parametrize("name", [name for name, (_, hops, _) in LAYERS.items() if hops])
def test_what_is_further_away_does_not_matter(name):
    layer, hops, edges = made(name)
    graph, x = path(8), torch.randn(8, D, dtype=torch.float64, requires_grad=True)
    edge = torch.randn(graph.edges.shape[1], E, dtype=torch.float64)
    y = call(layer, x, graph, edge, edges)
    (grad,) = torch.autograd.grad(y[3].sum(), x)
    reached = graph.neighbourhood(3, hops)
    outside = torch.ones(8, dtype=torch.bool)
    outside[reached] = False
    assert (grad[outside] == 0).all()


@pytest.mark.parametrize("name", LAYERS)
def test_a_batch_is_its_graphs(name):
    layer, _, edges = made(name)
    parts = [
        random_graph(6, 1),
        random_graph(9, 2),
        (Graph([], 1), torch.randn(1, D).double(), torch.zeros(0, E).double()),
    ]
    whole = Graph.batch([graph for graph, _, _ in parts])
    y = call(layer, torch.cat([x for _, x, _ in parts]), whole, torch.cat([edge for *_, edge in parts]), edges)
    alone = torch.cat([call(layer, x, graph, edge, edges) for graph, x, edge in parts])
    torch.testing.assert_close(y, alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("nodes", [0, 1, 3])
def test_graphs_without_edges(name, nodes):
    layer, _, edges = made(name)
    x = torch.randn(nodes, D, dtype=torch.float64)
    y = call(layer, x, Graph([], nodes), torch.zeros(0, E, dtype=torch.float64), edges)
    assert y.shape[0] == nodes
    assert torch.isfinite(y).all()


@pytest.mark.parametrize("name", READOUTS)
def test_readouts_are_invariant_and_batches_are_their_graphs(name):
    torch.manual_seed(0)
    layer = READOUTS[name]().double().eval()
    parts = [random_graph(6, 1), random_graph(9, 2)]
    whole, x = Graph.batch([graph for graph, *_ in parts]), torch.cat([x for _, x, _ in parts])
    y = layer(x, whole)
    torch.testing.assert_close(y, torch.cat([layer(x, graph) for graph, x, _ in parts]))
    order = torch.cat([torch.randperm(6), 6 + torch.randperm(9)])
    torch.testing.assert_close(layer(x[order], whole.permuted(order)), y)
    hollow = Graph.batch([parts[0][0], Graph([], 0)])
    assert torch.isfinite(layer(parts[0][1], hollow)).all()


@pytest.mark.parametrize(
    "name", ["convolution", "row", "neighbour", "chebyshev", "polynomial", "sage", "sage max", "gat", "implicit"]
)
def test_sparse_features_give_what_dense_ones_do(name):
    layer, _, _ = made(name)
    graph, x, _ = random_graph()
    x = x * (torch.rand_like(x) < 0.4)
    torch.testing.assert_close(layer(SparseRows.of(x), graph), layer(x, graph))


def test_a_convolution_on_no_edges_is_a_dense_layer():
    layer = g.GraphConvolution(3, 2)
    x = torch.randn(4, 3)
    torch.testing.assert_close(layer(x, Graph([], 4)), layer.project(x) + layer.bias)


def test_attention_sums_to_one_and_gat_ranks_neighbours_the_same_for_all():
    graph, x, _ = random_graph()
    for layer in (g.GAT(D, 3, heads=2).double(), g.GATv2(D, 3, heads=2).double()):
        looped, share, _ = layer.shares(x, graph)
        total = torch.zeros(graph.nodes, 2).double().index_add(0, looped.pattern.row, share)
        torch.testing.assert_close(total, torch.ones_like(total))
    everyone = Graph(torch.cartesian_prod(torch.arange(5), torch.arange(5)).t())
    _, share, _ = g.GAT(D, 3).double().shares(x[:5], everyone)
    ranks = share.view(5, 5).argsort(1)
    assert (ranks == ranks[0]).all()


def test_gat_v2_can_prefer_the_most_similar():
    layer = g.GATv2(1, 2, heads=1, slope=0.2)
    with torch.no_grad():
        layer.target.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        layer.source.weight.copy_(torch.tensor([[-1.0], [1.0]]))
        layer.source.bias.zero_()
        layer.target.bias.zero_()
        layer.score.copy_(torch.tensor([[[-1.0, -1.0]]]))
    everyone = Graph(torch.cartesian_prod(torch.arange(3), torch.arange(3)).t())
    x = torch.tensor([[0.0], [1.0], [5.0]])
    _, share, _ = layer.shares(x, everyone)
    torch.testing.assert_close(share.view(3, 3), torch.softmax(-0.8 * (x - x.t()).abs(), 1))


def test_attention_on_a_complete_graph_is_self_attention():
    layer = g.EdgeAttention(D, 4, own=False).double()
    x = torch.randn(5, D).double()
    everyone = Graph(torch.cartesian_prod(torch.arange(5), torch.arange(5)).t())
    q, k, v = layer.query(x), layer.key(x), layer.value(x)
    torch.testing.assert_close(layer(x, everyone), torch.softmax(q @ k.t() / 2, 1) @ v)


def test_the_implicit_layer_is_at_rest_and_its_gradient_is_right():
    torch.manual_seed(0)
    layer = g.ImplicitGraph(3, 2, tolerance=1e-13, steps=2000).double()
    graph = Graph.undirected([(0, 1), (1, 2)])
    x = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    z = layer(x, graph)
    pattern, value = graph.normalised(dtype=torch.float64)
    dense = torch.zeros(3, 3).double().index_put((pattern.row, pattern.column), value)
    torch.testing.assert_close(z, torch.tanh(dense @ z @ layer.contraction() + layer.project(x)))
    assert torch.autograd.gradcheck(
        lambda x, w: torch.func.functional_call(layer, {"weight": w}, (x, graph)), (x, layer.weight)
    )


def test_random_walks_tell_apart_what_weisfeiler_lehman_does_not():
    hexagon = Graph.undirected([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)])
    triangles = Graph.undirected([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    torch.manual_seed(0)
    gin = g.GIN(1, 8).eval()
    ones = torch.ones(6, 1)
    torch.testing.assert_close(gin(ones, hexagon).sum(0), gin(ones, triangles).sum(0))
    assert not torch.allclose(g.random_walk_encoding(hexagon, 3), g.random_walk_encoding(triangles, 3))


def test_return_probabilities_of_the_book():
    graph = Graph.undirected([(0, 1), (0, 2), (1, 2), (1, 3)])
    expected = [
        [0, 0, 0, 0],
        [0.4167, 0.6667, 0.4167, 0.3333],
        [0.1667, 0.1667, 0.1667, 0],
        [0.2986, 0.5278, 0.2986, 0.2222],
    ]
    torch.testing.assert_close(g.random_walk_encoding(graph, 4), torch.tensor(expected).t(), atol=1e-4, rtol=0)


def test_laplacian_encoding_separates_components_and_follows_permutations():
    graph, _, _ = random_graph()
    made = g.laplacian_encoding(graph, 3)
    order = torch.randperm(graph.nodes)
    moved = g.laplacian_encoding(graph.permuted(order), 3)
    assert made.shape == moved.shape == (9, 3)
    assert torch.isfinite(moved).all()
    assert (g.flip(made).abs() == made.abs()).all()


def test_anchors():
    assert g.anchor_encoding(path(3), torch.tensor([0])).flatten().tolist() == [1.0, 0.5, pytest.approx(1 / 3)]


def test_diffusion_converges_to_the_mean_of_each_component():
    graph = Graph.undirected([(0, 1), (1, 2), (3, 4)])
    x = torch.randn(5, 2)
    y = g.diffuse(x, graph, steps=300)
    torch.testing.assert_close(y[:3], x[:3].mean(0).expand(3, 2), atol=1e-5, rtol=0)
    torch.testing.assert_close(y[3:], x[3:].mean(0).expand(2, 2), atol=1e-5, rtol=0)


def test_the_manifold_penalty_is_the_quadratic_form_of_the_laplacian():
    graph = erdos_renyi(8, 0.5)
    f = torch.randn(8, 3)
    torch.testing.assert_close(
        g.manifold_penalty(f, graph), (f.t() @ graph.laplacian() @ f).trace(), rtol=1e-4, atol=1e-4
    )


def test_drop_edge_takes_both_directions():
    torch.manual_seed(0)
    graph = erdos_renyi(20, 0.4)
    kept, edges = g.DropEdge(0.5).train()(graph)
    assert kept.is_undirected
    assert 0 < kept.edges.shape[1] < graph.edges.shape[1]
    assert torch.equal(graph.edges[:, edges], kept.edges)


def test_top_k_pooling_keeps_a_share_of_each_graph():
    parts = [random_graph(6, 1), random_graph(9, 2)]
    whole, x = Graph.batch([graph for graph, *_ in parts]), torch.cat([x for _, x, _ in parts])
    y, smaller, nodes, _ = g.TopKPooling(D, 0.5).double()(x, whole)
    assert smaller.sizes.tolist() == [3, 5]
    assert y.shape == (8, D)
    assert (nodes.diff() > 0).all()


def test_cluster_pooling_keeps_what_there_is():
    graph, x, _ = random_graph()
    coarse, a, link, entropy = g.ClusterPooling(D, 3).double()(x, graph)
    torch.testing.assert_close(coarse.sum(1), x.sum(0)[None])
    torch.testing.assert_close(a.sum(), graph.adjacency().sum().double())
    assert link > 0
    assert entropy > 0


def test_spatio_temporal_is_causal():
    layer, graph = g.SpatioTemporal(2, 3), path(4)
    x = torch.randn(4, 6, 2, requires_grad=True)
    (grad,) = torch.autograd.grad(layer(x, graph)[0, 3].sum(), x)
    assert (grad[:, 4:] == 0).all()
    assert (grad[2:] == 0).all()
    assert (grad[1, :4] != 0).any()


def test_virtual_nodes_join_everything_in_two_rounds():
    torch.manual_seed(0)
    layer, graph = g.VirtualNode(3), Graph([], 4)
    x = torch.randn(4, 3, requires_grad=True)
    first, state = layer(x, graph)
    second, _ = layer(first, graph, state)
    (grad,) = torch.autograd.grad(second[0].sum(), x)
    assert (grad[3] != 0).any()


def test_edge_updates_and_jumping_knowledge():
    graph, x, edge = random_graph()
    assert g.EdgeUpdate(D, E).double()(x, graph, edge).shape == edge.shape
    layers = [x, 2 * x]
    assert g.JumpingKnowledge("max")(layers).shape == x.shape
    assert g.JumpingKnowledge("attention", D).double()(layers).shape == x.shape


def test_double_gradients_of_attention():
    graph = Graph.undirected([(0, 1), (1, 2)])
    layer = g.GAT(2, 2, heads=2).double()
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: layer(x, graph), (x,))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: check(g.GIN(3, 2), x, x.tolist()), "GIN takes features and a Graph, not a list: make one with Graph(edges)."),
        (lambda x: g.GAT(3, 2)(x, Graph([], 5)), "GAT takes a row of features for each of 5 nodes, not (4, 3)."),
        (lambda x: g.GINE(3, 2, edge_dim=1)(x, Graph([(0, 1)], 4), x), "GINE takes a row of features for each of 1 edges, not (4, 3)."),
        (lambda x: g.GraphSAGE(3, 2, reduce="median"), "GraphSAGE reduces by mean, sum or max, not 'median'."),
        (lambda x: g.MessagePassing(3, 2, reduce="median"), "Messages are reduced by sum, mean, max, min, not 'median'."),
        (lambda x: g.GraphConvolution(3, 2, norm="left")(x, Graph([], 4)), "There is no normalisation 'left'. Known are symmetric, row, column, none."),
        (lambda x: g.GatedGraph(2)(x, Graph([], 4)), "GatedGraph with a state of 2 takes at most as many features, not 3."),
        (lambda x: g.NodeAttention(3, heads=2), "NodeAttention of width 3 cannot be cut into 2 heads of equal width."),
        (lambda x: g.DropEdge(1.0), "DropEdge takes a probability of at least 0 and below 1, not 1.0."),
        (lambda x: g.TopKPooling(3, 0.0), "TopKPooling keeps a share of the nodes above 0 and at most 1, not 0.0."),
        (lambda x: g.JumpingKnowledge("min"), "Layers are joined by cat, max or attention, not 'min'."),
        (lambda x: g.JumpingKnowledge("attention"), "JumpingKnowledge by attention needs dim, the width of the layers."),
        (lambda x: g.PNA(3, 2, degrees=[]), "PNA needs the degrees of training nodes: how many have 0, 1, 2, ... neighbours."),
        (lambda x: g.label_propagation(torch.zeros(2).long(), Graph([], 4), 2), "label_propagation takes a class for each of 4 nodes, not 2."),
    ],
)  # fmt: skip
def test_faults_are_named(make, words):
    with pytest.raises(WonderlandError) as error:
        make(torch.randn(4, 3))
    assert str(error.value) == words


def test_features_that_are_mostly_zero_become_sparse_once():
    x = torch.zeros(30, 200)
    x[torch.arange(30), torch.arange(30)] = 1.0
    first = lean(x)
    assert isinstance(first, SparseRows)
    assert lean(x) is first
    x[0] = 1.0
    torch.testing.assert_close(lean(x).dense(), x)
    full = torch.randn(30, 200)
    assert lean(full) is full


LAWFUL = {
    **{name: make for name, (make, *_) in LAYERS.items() if name not in ("implicit", "node attention", "gps")},
    **READOUTS,
}


@pytest.mark.parametrize("name", LAWFUL)
def test_layers_keep_the_laws_they_claim(name):
    torch.manual_seed(0)
    layer = LAWFUL[name]()
    graph, x = path(6), torch.randn(6, D)
    given = (x, graph, torch.randn(10, E)) if LAYERS.get(name, (0, 0, False))[2] else (x, graph)
    verdicts = wonderland.check(layer, Example(given, axes=("node", "feature")), CLAIMED)
    assert not verdicts.broken, str(verdicts)
    silent = [verdict.law for verdict in verdicts if verdict.outcome == "not applicable"]
    assert silent == ([] if LAYERS.get(name, (0, None, 0))[1] else ["graph_locality"])


class Running(torch.nn.Module):
    """A running sum over nodes, which no graph explains."""

    hops = 1

    def forward(self, x, graph):
        return x.cumsum(0)


class Distant(torch.nn.Module):
    """Two convolutions that claim to be one."""

    hops = 1

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(g.GraphConvolution(D, D) for _ in range(2))

    def forward(self, x, graph):
        return self.layers[1](self.layers[0](x, graph), graph)


class Shared(torch.nn.Module):
    """Takes the mean of all nodes away, whichever graph they belong to."""

    def forward(self, x, graph):
        return x - x.mean(0)


class Unguarded(torch.nn.Module):
    """Divides by degrees, also by those that are 0."""

    def forward(self, x, graph):
        return x / graph.degree[:, None]


@pytest.mark.parametrize(
    ("module", "broken"),
    [
        (Running(), ["graph_permutation", "graph_locality", "graph_batching"]),
        (Distant(), ["graph_locality"]),
        (Shared(), ["graph_batching"]),
        (Unguarded(), ["graph_edge_cases"]),
    ],
)
def test_laws_of_graphs_find_what_is_wrong(module, broken):
    example = Example((torch.randn(8, D), path(8)), axes=("node", "feature"))
    names = ["graph_permutation", "graph_locality", "graph_batching", "graph_edge_cases"]
    assert [verdict.law for verdict in wonderland.check(module, example, names).broken] == broken


def test_layers_of_torch_geometric_are_checked_as_they_are():
    theirs = pytest.importorskip("torch_geometric.nn")
    example = Example((torch.randn(6, D), path(6).edges), axes=("node", "feature"))
    assert not wonderland.check(theirs.SAGEConv(D, 3), example, ["graph_permutation", "graph_batching"]).broken
    nothing = wonderland.check(torch.nn.Linear(D, 3), torch.randn(6, D), ["graph_permutation"])
    assert [verdict.outcome for verdict in nothing] == ["not applicable"]


def test_trained_weights_of_edges_begin_as_those_of_the_graph():
    graph, x, _ = random_graph()
    layer = g.TrainableAdjacency(D, OUT, edges=graph.edges.shape[1]).double()
    plain = g.GraphConvolution(D, OUT, loops=False).double()
    plain.load_state_dict({"bias": layer.bias, "project.weight": layer.project.weight})
    torch.testing.assert_close(layer(x, graph), plain(x, graph))
    assert not wonderland.check(layer, Example((x, graph), axes=("node", "feature"))).broken
    with torch.no_grad():
        layer.scale[3] = 0.0
    kept = torch.arange(graph.edges.shape[1]) != 3
    moved = (layer(x, graph) - plain(x, graph)).abs().sum(1) > 0
    assert moved.nonzero()[:, 0].tolist() == [int(graph.edges[1][~kept])]
    with pytest.raises(
        WonderlandError, match=r"^TrainableAdjacency has a weight for each of 2 edges, and this graph has 4\.$"
    ):
        g.TrainableAdjacency(D, OUT, edges=2)(x[:3], path(3))
