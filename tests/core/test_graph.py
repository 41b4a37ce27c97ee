"""Graph: the numbers of the book, conversions, and what is refused."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.random_graphs import (
    barabasi_albert,
    circle,
    complete,
    erdos_renyi,
    grid,
    path,
    random_edges,
    stochastic_blocks,
)

BOOK = [(0, 1), (0, 2), (1, 2), (1, 3)]


def test_the_four_node_graph_of_the_book():
    graph = Graph.undirected(BOOK)
    assert graph.adjacency().tolist() == [[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 0]]
    b = graph.incidence()
    assert (b.sum(0) == 2).all()
    torch.testing.assert_close(b @ b.t(), torch.diag(graph.degree) + graph.adjacency())
    torch.testing.assert_close(
        torch.linalg.eigvalsh(graph.laplacian()), torch.tensor([0.0, 1, 3, 4]), atol=1e-5, rtol=0
    )
    x = torch.tensor([1.0, 2, 3, 4])
    assert float(x @ graph.laplacian() @ x) == 10
    pattern, value = graph.normalised()
    dense = torch.zeros(4, 4).index_put((pattern.row, pattern.column), value)
    torch.testing.assert_close(dense[0], torch.tensor([0.3333, 0.2887, 0.3333, 0]), atol=1e-4, rtol=0)
    torch.testing.assert_close(dense[3], torch.tensor([0, 0.3536, 0, 0.5]), atol=1e-4, rtol=0)
    assert float(torch.linalg.eigvalsh(dense).max()) == pytest.approx(1)
    assert graph.is_shift(dense)
    assert not graph.is_shift(torch.ones(4, 4))


@pytest.mark.parametrize("kind", ["combinatorial", "normalised", "random walk"])
def test_laplacians(kind):
    graph = Graph(erdos_renyi(7, 0.5).edges, 8)
    a = graph.adjacency()
    d = a.sum(1)
    inverse = torch.where(d > 0, 1 / d.clamp(min=1), 0)
    expected = {
        "combinatorial": torch.diag(d) - a,
        "normalised": torch.diag((d > 0).float()) - inverse.sqrt()[:, None] * a * inverse.sqrt(),
        "random walk": torch.diag((d > 0).float()) - inverse[:, None] * a,
    }
    torch.testing.assert_close(graph.laplacian(kind), expected[kind])
    torch.testing.assert_close(graph.laplacian("combinatorial"), graph.with_loops().laplacian("combinatorial"))


def test_normalisations_sum_to_one():
    graph = Graph(torch.randint(0, 9, (2, 30)), 10)
    for norm, axis in (("row", 1), ("column", 0)):
        pattern, value = graph.normalised(norm, loops=False)
        dense = torch.zeros(10, 10).index_put((pattern.row, pattern.column), value, accumulate=True)
        if axis:
            assert set(dense.sum(1).round(decimals=4).tolist()) <= {0.0, 1.0}
        else:
            undirected = erdos_renyi(9, 0.5)
            pattern, value = undirected.normalised("column", loops=False)
            dense = torch.zeros(9, 9).index_put((pattern.row, pattern.column), value)
            torch.testing.assert_close(dense.sum(0), (undirected.degree > 0).float())


def test_loops_are_added_once():
    graph = Graph([(0, 0), (0, 1)])
    looped = graph.with_loops()
    assert sorted(looped.edges.t().tolist()) == [[0, 0], [0, 1], [1, 1]]
    assert looped.with_loops().edges.shape[1] == 3
    assert graph.without_loops().edges.tolist() == [[0], [1]]
    assert graph.has_loops


def test_duplicates():
    graph = Graph([(0, 1), (0, 1), (1, 0)], weight=[1.0, 2.0, 4.0])
    assert graph.duplicates == 1
    once = graph.without_duplicates()
    assert dict(zip(map(tuple, once.edges.t().tolist()), once.weight.tolist(), strict=True)) == {
        (0, 1): 3.0,
        (1, 0): 4.0,
    }


def test_neighbourhoods_components_distances_homophily():
    graph = Graph.undirected([(0, 1), (1, 2), (3, 4)], 6)
    assert graph.neighbourhood(0, 1).tolist() == [0, 1]
    assert graph.neighbourhood([0], 2).tolist() == [0, 1, 2]
    assert graph.components().tolist() == [0, 0, 0, 1, 1, 2]
    assert graph.distances([0]).tolist() == [[0, 1, 2, float("inf"), float("inf"), float("inf")]]
    assert graph.homophily([0, 0, 1, 1, 1, 0]) == pytest.approx(2 / 3)
    assert Graph([], 3).homophily([0, 1, 2]) is None
    assert path(300).components().unique().tolist() == [0]
    assert Graph([(0, 1)]).neighbourhood(0).tolist() == [0]
    assert Graph([(0, 1)]).neighbourhood(1).tolist() == [0, 1]


def test_permutations_and_subgraphs():
    graph = Graph(erdos_renyi(8, 0.4).edges, 8, weight=torch.rand(erdos_renyi(8, 0.4).edges.shape[1]))
    order = torch.randperm(8)
    torch.testing.assert_close(graph.permuted(order).adjacency(), graph.adjacency()[order][:, order])
    inner, edges = graph.subgraph([5, 1, 3])
    torch.testing.assert_close(inner.adjacency(), graph.adjacency()[[5, 1, 3]][:, [5, 1, 3]])
    assert len(edges) == inner.edges.shape[1]


def test_batches():
    graphs = [Graph.undirected(BOOK), Graph([], 0), path(3)]
    whole = Graph.batch(graphs)
    assert whole.sizes.tolist() == [4, 0, 3]
    torch.testing.assert_close(
        whole.adjacency(), torch.block_diag(*(graph.adjacency() for graph in graphs if graph.nodes))
    )
    assert whole.graphs == 3


def test_conversions():
    networkx = pytest.importorskip("networkx")
    graph = Graph.undirected(BOOK)
    assert networkx.is_isomorphic(graph.to_networkx(), networkx.Graph(BOOK))
    back = Graph.from_networkx(graph.to_networkx())
    torch.testing.assert_close(back.adjacency(), graph.adjacency())
    directed = Graph([(0, 1)], weight=[2.0])
    assert Graph.from_networkx(directed.to_networkx()).weight.tolist() == [2.0]
    torch.testing.assert_close(Graph.from_adjacency(directed.adjacency()).adjacency(), directed.adjacency())
    torch.testing.assert_close(Graph.from_adjacency(directed.to_scipy()).adjacency(), directed.adjacency())
    assert (directed.to_scipy().toarray() == directed.adjacency().numpy()).all()
    torch.testing.assert_close(Graph.from_adjacency(graph.adjacency().to_sparse()).adjacency(), graph.adjacency())


def test_powers_and_diameter():
    graph = Graph(erdos_renyi(9, 0.3).edges, 9)
    a = graph.adjacency()
    for k in (1, 2, 3):
        torch.testing.assert_close(graph.power(k).adjacency(), torch.linalg.matrix_power(a, k))
    assert (grid(8, 8).diameter(), circle(7).diameter(), Graph([], 0).diameter()) == (14, 3, 0)
    assert Graph([], 2).diameter() == float("inf")


def test_torch_geometric_and_back():
    data = pytest.importorskip("torch_geometric.data")
    graph = Graph(Graph.undirected(BOOK).edges, 5, weight=torch.rand(8))
    there = graph.to_pyg(torch.ones(5, 2), torch.ones(8, 1))
    back = Graph.from_pyg(there)
    torch.testing.assert_close(back.adjacency(), graph.adjacency())
    assert (there.num_nodes, there.edge_attr.shape) == (5, (8, 1))
    plain = [data.Data(num_nodes=n, edge_index=torch.zeros(2, 0).long()) for n in (5, 2)]
    several = Graph.from_pyg(data.Batch.from_data_list(plain))
    assert several.sizes.tolist() == [5, 2]


def test_a_graph_does_not_change():
    with pytest.raises(WonderlandError) as error:
        path(3).nodes = 4
    assert str(error.value) == (
        "A Graph does not change, since what is derived from it is kept: make another one to set nodes."
    )


def test_generators():
    graph = erdos_renyi(400, 0.1)
    assert float(graph.degree.mean()) == pytest.approx(39.9, abs=1.5)
    hubs = barabasi_albert(400, 3)
    assert hubs.edges.shape[1] == 2 * 3 * 397
    assert float(hubs.degree.max()) > 30
    assert int(hubs.degree.min()) >= 1
    blocks, group = stochastic_blocks([50, 50], 0.3, 0.01)
    assert blocks.homophily(group) > 0.9
    assert sorted(set(grid(8, 8).degree.tolist())) == [2, 3, 4]
    assert float(grid(8, 8).distances([0]).max()) == 14
    assert circle(5).degree.tolist() == [2] * 5
    assert complete(5).degree.tolist() == [4] * 5
    large = random_edges(1000, 5000)
    assert large.duplicates == 0
    assert not large.has_loops


def test_what_is_derived_in_inference_mode_serves_training():
    from wonderland.nn.graph import GraphConvolution

    graph, layer = path(3), GraphConvolution(2, 2)
    with torch.inference_mode():
        layer(torch.randn(3, 2), graph)
    layer(torch.randn(3, 2), graph).sum().backward()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Graph([(0, 3)], 3), "An edge names node 3, but there are 3 nodes, numbered from 0."),
        (lambda: Graph([(0, -1)]), "An edge names node -1: nodes are numbered from 0."),
        (lambda: Graph(torch.ones(3, 2).long()), "Edges are a tensor (2, m), sources above targets, or a list of pairs, not (3, 2)."),
        (lambda: Graph(torch.ones(2, 2)), "Edges hold node numbers, not float32."),
        (lambda: Graph([(0, 1, 2)]), "A list of edges holds pairs (source, target)."),
        (lambda: Graph([(0, 1)], weight=[1.0, 2.0]), "A graph with 1 edges takes one weight for each, not (2,)."),
        (lambda: Graph([(0, 1)], weight=[float("nan")]), "The weights of a graph must be finite numbers."),
        (lambda: Graph([(0, 1)], member=torch.tensor([0, 1])), "An edge joins nodes of two graphs: edges stay within a graph."),
        (lambda: Graph([], 2, member=torch.tensor([1, 0])), "`member` names the graph of each node (n,), the nodes of a graph side by side."),
        (lambda: Graph([], 1, member=torch.tensor([4]), graphs=2), "`member` names graph 4, but there are 2."),
        (lambda: Graph.from_adjacency(torch.ones(2, 3)), "An adjacency matrix is square, not (2, 3)."),
        (lambda: path(2).power(0), "A power of a graph is that of at least 1 step, not 0."),
        (lambda: Graph([], 6000).diameter(), "The diameter of 6,000 nodes is not computed: it needs a path for each pair, up to 5,000 nodes."),
        (lambda: path(2).laplacian("left"), "There is no Laplacian 'left'. Known are combinatorial, normalised and random walk."),
        (lambda: erdos_renyi(3, 1.5), "The probability of an edge is between 0 and 1, not 1.5."),
        (lambda: barabasi_albert(3, 3), "Each node joins at least 1 and fewer than 3 others, not 3."),
    ],
)  # fmt: skip
def test_faults_are_named(make, words):
    with pytest.raises(WonderlandError) as error:
        make()
    assert str(error.value) == words
