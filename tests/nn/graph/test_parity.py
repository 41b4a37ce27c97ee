"""Layers against torch_geometric with the same weights, in double precision: outputs and gradients."""

import warnings

import pytest
import torch
from torch import nn

from wonderland.core.graph import Graph
from wonderland.nn import graph as ours

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip("torch_geometric.nn")

D, OUT, E = 5, 6, 3


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


def small_graph(loops: bool = False) -> Graph:
    """Directed and undirected edges in no order, an isolated node, and loops if asked."""
    pairs = torch.randint(0, 11, (2, 30))
    pairs = pairs[:, pairs[0] != pairs[1]]
    pairs = torch.unique(pairs, dim=1)[:, torch.randperm(torch.unique(pairs, dim=1).shape[1])]
    pairs = torch.cat([pairs, torch.tensor([[2, 5], [2, 5]])], 1) if loops else pairs
    return Graph(pairs, 12)


def copy(layer, **weights):
    """Write tensors of their layer into parameters of ours."""
    with torch.no_grad():
        for name, value in weights.items():
            target = layer.get_parameter(name.replace("__", "."))
            assert target.shape == value.shape, (name, target.shape, value.shape)
            target.copy_(value)


def same(layer, other, pairs, x, arguments, other_arguments):
    """Equal outputs, and equal gradients of the input and of every pair of parameters."""
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, z = layer(a, *arguments), other(b, *other_arguments)
    torch.testing.assert_close(y, z, rtol=1e-9, atol=1e-9)
    weight = torch.randn_like(y)
    (y * weight).sum().backward()
    (z * weight).sum().backward()
    torch.testing.assert_close(a.grad, b.grad, rtol=1e-8, atol=1e-8)
    for name, parameter in pairs.items():
        found = layer.get_parameter(name.replace("__", "."))
        torch.testing.assert_close(found.grad, parameter.grad.view_as(found), rtol=1e-8, atol=1e-8)


def compare(layer, other, pairs, graph, edge=None, x=None):
    copy(layer, **{name: value.detach() for name, value in pairs.items()})
    x = torch.randn(graph.nodes, D) if x is None else x
    extra = () if edge is None else (edge,)
    same(layer, other, pairs, x, (graph, *extra), (graph.edges, *extra))


@pytest.mark.parametrize("loops", [False, True])
def test_gcn(loops):
    graph, other = small_graph(loops), theirs.GCNConv(D, OUT)
    nn.init.normal_(other.bias)
    compare(ours.GraphConvolution(D, OUT), other, {"project__weight": other.lin.weight, "bias": other.bias}, graph)


def test_gcn_with_weights():
    plain, other = small_graph(True), theirs.GCNConv(D, OUT)
    weight = torch.rand(plain.edges.shape[1])
    layer, graph, x = ours.GraphConvolution(D, OUT), Graph(plain.edges, plain.nodes, weight=weight), torch.randn(12, D)
    copy(layer, project__weight=other.lin.weight.detach(), bias=other.bias.detach())
    same(layer, other, {"project__weight": other.lin.weight}, x, (graph,), (graph.edges, weight))


def test_chebyshev():
    graph, other = small_graph(True), theirs.ChebConv(D, OUT, K=4)
    undirected = Graph.undirected(graph.edges[:, :12], 12)
    pairs = {f"project__{k}__weight": linear.weight for k, linear in enumerate(other.lins)}
    compare(ours.Chebyshev(D, OUT, order=4), other, pairs, undirected)


def test_personalised_propagation():
    compare(ours.PersonalisedPropagation(5, 0.2), theirs.APPNP(5, 0.2), {}, small_graph(True))


@pytest.mark.parametrize("reduce", ["mean", "sum", "max"])
@pytest.mark.parametrize("out", [3, 8])
def test_sage(reduce, out):
    other = theirs.SAGEConv(D, out, aggr=reduce)
    pairs = {
        "project__weight": other.lin_l.weight,
        "project__bias": other.lin_l.bias,
        "own__weight": other.lin_r.weight,
    }
    compare(ours.GraphSAGE(D, out, reduce=reduce), other, pairs, small_graph(True))


@pytest.mark.parametrize("join", [True, False])
@pytest.mark.parametrize("edges", [False, True])
def test_gat(join, edges):
    graph, dim = small_graph(True), E if edges else None
    other = theirs.GATConv(D, OUT, heads=3, concat=join, edge_dim=dim)
    pairs = {"project__weight": other.lin.weight, "source": other.att_src, "target": other.att_dst, "bias": other.bias}
    pairs |= {"edge__weight": other.lin_edge.weight, "along": other.att_edge} if edges else {}
    edge = torch.randn(graph.edges.shape[1], E) if edges else None
    compare(ours.GAT(D, OUT, heads=3, join=join, edge_dim=dim), other, pairs, graph, edge)


@pytest.mark.parametrize("edges", [False, True])
def test_gat_v2(edges):
    graph, dim = small_graph(True), E if edges else None
    other = theirs.GATv2Conv(D, OUT, heads=3, edge_dim=dim)
    pairs = {"source__weight": other.lin_l.weight, "source__bias": other.lin_l.bias, "target__weight": other.lin_r.weight,
             "target__bias": other.lin_r.bias, "score": other.att, "bias": other.bias}  # fmt: skip
    pairs |= {"edge__weight": other.lin_edge.weight} if edges else {}
    edge = torch.randn(graph.edges.shape[1], E) if edges else None
    compare(ours.GATv2(D, OUT, heads=3, edge_dim=dim), other, pairs, graph, edge)


def test_gin_and_gine():
    graph, mlp = small_graph(True), nn.Sequential(nn.Linear(D, OUT), nn.ReLU(), nn.Linear(OUT, OUT))
    mlp2 = nn.Sequential(nn.Linear(D, OUT), nn.ReLU(), nn.Linear(OUT, OUT))
    other = theirs.GINConv(mlp2, eps=0.3, train_eps=True)
    mlp.load_state_dict(mlp2.state_dict())
    pairs = {"mlp__0__weight": mlp2[0].weight}
    layer = ours.GIN(D, OUT, epsilon=0.3, learn_epsilon=True, mlp=mlp)
    compare(layer, other, pairs, graph)
    torch.testing.assert_close(layer.epsilon.grad, other.eps.grad.view(()))
    other = theirs.GINEConv(mlp2, eps=0.1, edge_dim=E)
    mlp.load_state_dict(mlp2.state_dict())
    mlp2.zero_grad()
    mlp.zero_grad()
    pairs = {"edge__weight": other.lin.weight, "edge__bias": other.lin.bias, "mlp__2__weight": mlp2[2].weight}
    compare(
        ours.GINE(D, OUT, edge_dim=E, epsilon=0.1, mlp=mlp), other, pairs, graph, torch.randn(graph.edges.shape[1], E)
    )


def test_gated_graph():
    other = theirs.GatedGraphConv(OUT, 3)
    pairs = {"weight": other.weight, "update__weight_ih": other.rnn.weight_ih, "update__bias_hh": other.rnn.bias_hh,
             "update__weight_hh": other.rnn.weight_hh, "update__bias_ih": other.rnn.bias_ih}  # fmt: skip
    compare(ours.GatedGraph(OUT, steps=3), other, pairs, small_graph())


@pytest.mark.parametrize("hidden", [4, 40])
def test_edge_network(hidden):
    graph = small_graph()
    net, net2 = (nn.Sequential(nn.Linear(E, hidden), nn.ReLU(), nn.Linear(hidden, D * OUT)) for _ in range(2))
    other = theirs.NNConv(D, OUT, net2, aggr="mean")
    net.load_state_dict(net2.state_dict())
    pairs = {"own__weight": other.lin.weight, "bias": other.bias, "network__0__weight": net2[0].weight, "network__2__weight": net2[2].weight, "network__2__bias": net2[2].bias}  # fmt: skip
    layer = ours.EdgeNetwork(D, OUT, edge_dim=E, reduce="mean", network=net)
    compare(layer, other, pairs, graph, torch.randn(graph.edges.shape[1], E))


@pytest.mark.parametrize("edges", [False, True])
def test_principal_neighbourhood_aggregation(edges):
    graph, dim = small_graph(), E if edges else None
    degree = torch.bincount(torch.bincount(graph.edges[1], minlength=12))
    reduce, scale = ["mean", "min", "max", "std", "sum"], ["identity", "amplification", "attenuation", "linear"]
    other = theirs.PNAConv(D, OUT, reduce, scale, degree, edge_dim=dim)
    layer = ours.PNA(D, OUT, degrees=degree.tolist(), reduce=reduce, scale=scale, edge_dim=dim)
    pairs = {"message__weight": other.pre_nns[0][0].weight, "message__bias": other.pre_nns[0][0].bias,
             "update__weight": other.post_nns[0][0].weight, "update__bias": other.post_nns[0][0].bias,
             "mix__weight": other.lin.weight, "mix__bias": other.lin.bias}  # fmt: skip
    pairs |= {"edge__weight": other.edge_encoder.weight, "edge__bias": other.edge_encoder.bias} if edges else {}
    compare(layer, other, pairs, graph, torch.randn(graph.edges.shape[1], E) if edges else None)


@pytest.mark.parametrize("join", [True, False])
@pytest.mark.parametrize("edges", [False, True])
def test_transformer(join, edges):
    graph, dim = small_graph(True), E if edges else None
    other = theirs.TransformerConv(D, OUT, heads=2, concat=join, edge_dim=dim)
    pairs = {"query__weight": other.lin_query.weight, "query__bias": other.lin_query.bias, "key__weight": other.lin_key.weight,
             "key__bias": other.lin_key.bias, "value__weight": other.lin_value.weight, "value__bias": other.lin_value.bias,
             "own__weight": other.lin_skip.weight, "own__bias": other.lin_skip.bias}  # fmt: skip
    pairs |= {"edge__weight": other.lin_edge.weight} if edges else {}
    edge = torch.randn(graph.edges.shape[1], E) if edges else None
    compare(ours.EdgeAttention(D, OUT, heads=2, join=join, edge_dim=dim), other, pairs, graph, edge)


def test_graph_norm_and_set2set():
    graph, x = Graph.batch([Graph([(0, 1)], 3), Graph([], 4)]), torch.randn(7, D)
    torch.testing.assert_close(ours.GraphNorm(D)(x, graph), theirs.GraphNorm(D)(x, graph.member))
    layer, other = ours.Set2Set(D), theirs.Set2Set(D, 3)
    copy(layer, cell__weight_ih=other.lstm.weight_ih_l0.data, cell__weight_hh=other.lstm.weight_hh_l0.data,
         cell__bias_ih=other.lstm.bias_ih_l0.data, cell__bias_hh=other.lstm.bias_hh_l0.data)  # fmt: skip
    torch.testing.assert_close(layer(x, graph), other(x, graph.member))
    torch.testing.assert_close(ours.PairNorm()(x, graph), theirs.PairNorm()(x, graph.member))


def test_neighbour_convolution():
    other = theirs.GraphConv(D, OUT)
    pairs = {
        "project__weight": other.lin_rel.weight,
        "project__bias": other.lin_rel.bias,
        "own__weight": other.lin_root.weight,
    }
    compare(ours.NeighbourConvolution(D, OUT), other, pairs, small_graph())
