"""Graphs from and to the forms of other libraries: networkx, scipy sparse, dense and sparse tensors, torch_geometric."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core.errors import WonderlandError, need
from wonderland.core.graph import Graph


def from_adjacency(matrix: Any) -> Graph:
    """From a matrix with :math:`A_{ij}` for the edge j -> i: dense, torch sparse or scipy sparse."""
    if hasattr(matrix, "tocoo"):
        coo = matrix.tocoo()
        edges = torch.stack([torch.as_tensor(coo.col).long(), torch.as_tensor(coo.row).long()])
        weight, shape = torch.as_tensor(coo.data), coo.shape
    else:
        dense = torch.as_tensor(matrix)
        coo = (dense if dense.layout is torch.sparse_coo else dense.to_sparse_coo()).coalesce()
        edges, weight, shape = coo.indices().flip(0), coo.values(), tuple(dense.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise WonderlandError(f"An adjacency matrix is square, not {tuple(shape)}.")
    plain = bool((weight == 1).all())
    return Graph(edges, shape[0], weight=None if plain else weight.double().to(torch.get_default_dtype()))


def from_networkx(graph: Any, weight: str = "weight") -> Graph:
    """From a networkx graph, its nodes in their order; the attribute `weight` is used where every edge has it."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    rows = list(graph.edges(data=True))
    pairs = [(place[a], place[b]) for a, b, _ in rows]
    weights = [data[weight] for *_, data in rows] if rows and all(weight in data for *_, data in rows) else None
    build = Graph if graph.is_directed() else Graph.undirected
    return build(pairs, len(place), weight=None if weights is None else torch.tensor(weights).float())


def to_networkx(graph: Graph) -> Any:
    """As a networkx graph: undirected where every edge has its opposite."""
    networkx = need("networkx", extra="graphs", why="to hand out a graph")
    converted = networkx.Graph() if graph.is_undirected else networkx.DiGraph()
    converted.add_nodes_from(range(graph.nodes))
    weights = None if graph.weight is None else graph.weight.tolist()
    for e, (a, b) in enumerate(graph.edges.t().tolist()):
        converted.add_edge(a, b, **({} if weights is None else {"weight": weights[e]}))
    return converted


def to_scipy(graph: Graph) -> Any:
    """The adjacency matrix as a scipy CSR array."""
    sparse = need("scipy.sparse", extra="graphs", why="to hand out a sparse matrix")
    value = graph.value(torch.float64)[graph.order].numpy()
    parts = (value, graph.pattern.column.numpy(), graph.pattern.start.numpy())
    return sparse.csr_array(parts, shape=(graph.nodes, graph.nodes))


def from_pyg(data: Any) -> Graph:
    """The graph of a `Data` or `Batch` of torch_geometric; its features stay `data.x` and `data.edge_attr`, in the same order."""
    edges = data.edge_index if data.edge_index is not None else torch.zeros(2, 0, dtype=torch.long)
    member = getattr(data, "batch", None)
    graphs = None if member is None else int(getattr(data, "num_graphs", int(member.max()) + 1 if len(member) else 0))
    return Graph(edges, int(data.num_nodes), weight=getattr(data, "edge_weight", None), member=member, graphs=graphs)


def to_pyg(graph: Graph, x: Tensor | None = None, edge: Tensor | None = None) -> Any:
    """As `Data` of torch_geometric, with features of nodes and edges if they are given."""
    data = need("torch_geometric.data", extra="test", why="to hand out a graph").Data
    more = {} if graph.weight is None else {"edge_weight": graph.weight}
    more |= {} if graph.member is None else {"batch": graph.member}
    return data(x=x, edge_index=graph.edges, edge_attr=edge, num_nodes=graph.nodes, **more)
