"""Graph: nodes and edges, checked once and never changed; what is derived from them is computed at its first use and kept."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.core.errors import WonderlandError
from wonderland.core.pattern import Pattern, derived, ranges

NORMS = ("symmetric", "row", "column", "none")


class Graph:
    r"""Nodes 0 .. n-1 and edges source -> target, along which messages flow.

    The adjacency matrix has :math:`A_{ij} = w` for an edge j -> i, so that :math:`(A x)_i` sums over the edges that end in i. An
    undirected graph holds both directions of each edge. Edges keep the order they are given in; `pattern` is A row after row,
    and `order` says which edge each of its entries is.

    Args:
        edges: (2, m), the sources above the targets.
        nodes: how many nodes there are; without it, one more than the largest id.
        weight: a weight for each edge (m,).
        member: the graph each node belongs to (n,), sorted, for many graphs in one.
        graphs: how many graphs there are.

    >>> graph = Graph.undirected([(0, 1), (0, 2), (1, 2), (1, 3)])
    >>> graph, graph.degree.tolist(), graph.laplacian().diagonal().tolist()
    (<Graph: 4 nodes, 8 edges>, [2.0, 3.0, 2.0, 1.0], [2.0, 3.0, 2.0, 1.0])
    """

    def __init__(
        self,
        edges: Any,
        nodes: int | None = None,
        *,
        weight: Any = None,
        member: Tensor | None = None,
        graphs: int | None = None,
    ):
        edges = _pairs(edges)
        nodes = _count(edges, nodes)
        if weight is not None:
            weight = torch.as_tensor(weight)
            weight = weight if weight.is_floating_point() else weight.float()
            if weight.shape != (edges.shape[1],):
                raise WonderlandError(
                    f"A graph with {edges.shape[1]:,} edges takes one weight for each, not {tuple(weight.shape)}."
                )
            if not torch.isfinite(weight).all():
                raise WonderlandError("The weights of a graph must be finite numbers.")
        if member is not None:
            member = torch.as_tensor(member)
            if member.shape != (nodes,) or (nodes > 1 and bool((member.diff() < 0).any())):
                raise WonderlandError("`member` names the graph of each node (n,), the nodes of a graph side by side.")
            least = int(member[-1]) + 1 if nodes else 0
            graphs = least if graphs is None else graphs
            if graphs < least or (nodes and int(member[0]) < 0):
                raise WonderlandError(f"`member` names graph {least - 1}, but there are {graphs}.")
            if edges.shape[1] and bool((member[edges[0]] != member[edges[1]]).any()):
                raise WonderlandError("An edge joins nodes of two graphs: edges stay within a graph.")
        self._hold(edges, nodes, weight, member, 1 if graphs is None else graphs)

    edges: Tensor
    nodes: int
    weight: Tensor | None
    member: Tensor | None
    graphs: int
    _kept: dict[Any, Any]

    def _hold(self, edges: Tensor, nodes: int, weight: Tensor | None, member: Tensor | None, graphs: int) -> None:
        self.__dict__.update(edges=edges, nodes=nodes, weight=weight, member=member, graphs=graphs, _kept={})

    def __setattr__(self, name: str, value: Any) -> None:
        raise WonderlandError(
            f"A Graph does not change, since what is derived from it is kept: make another one to set {name}."
        )

    # From and to other forms

    @staticmethod
    def undirected(pairs: Any, nodes: int | None = None, *, weight: Any = None) -> "Graph":
        """Both directions of each pair; a loop stands once."""
        edges = _pairs(pairs)
        loops = edges[0] == edges[1]
        both = torch.cat([edges, edges[:, ~loops].flip(0)], 1)
        if weight is not None:
            weight = torch.as_tensor(weight)
            weight = torch.cat([weight, weight[~loops]])
        return Graph(both, nodes, weight=weight)

    @staticmethod
    def from_adjacency(matrix: Any) -> "Graph":
        """From a matrix with :math:`A_{ij}` for the edge j -> i: dense, torch sparse or scipy sparse."""
        return _forms().from_adjacency(matrix)

    @staticmethod
    def from_networkx(graph: Any, weight: str = "weight") -> "Graph":
        """From a networkx graph, its nodes in their order; the attribute `weight` is used where every edge has it."""
        return _forms().from_networkx(graph, weight)

    @staticmethod
    def from_pyg(data: Any) -> "Graph":
        """The graph of a `Data` or `Batch` of torch_geometric; features stay in `data`, in the same order."""
        return _forms().from_pyg(data)

    def to_networkx(self) -> Any:
        """As a networkx graph: undirected where every edge has its opposite."""
        return _forms().to_networkx(self)

    def to_scipy(self) -> Any:
        """The adjacency matrix as a scipy CSR array."""
        return _forms().to_scipy(self)

    def to_pyg(self, x: Tensor | None = None, edge: Tensor | None = None) -> Any:
        """As `Data` of torch_geometric, with features of nodes and edges if they are given."""
        return _forms().to_pyg(self, x, edge)

    # What is derived

    def __repr__(self) -> str:
        many = f"{self.graphs:,} graphs, " if self.member is not None else ""
        return f"<Graph: {many}{self.nodes:,} nodes, {self.edges.shape[1]:,} edges>"

    @derived
    def _sorted(self) -> tuple[Pattern, Tensor]:
        return Pattern.of(self.edges[1], self.edges[0], self.nodes, self.nodes)

    @property
    def pattern(self) -> Pattern:
        """The places of the adjacency matrix, sorted by target and source."""
        return self._sorted[0]

    @property
    def order(self) -> Tensor:
        """Which edge each entry of `pattern` is (m,)."""
        return self._sorted[1]

    @derived
    def in_order(self) -> bool:
        """Whether edges are given sorted by target and source, so that `order` changes nothing."""
        return bool((self.order == torch.arange(len(self.order), device=self.order.device)).all())

    def sorted_edges(self, values: Tensor) -> Tensor:
        """Values of edges (m, ...) in the order of `pattern`."""
        return values if self.in_order else values[self.order]

    def value(self, dtype: torch.dtype | None = None) -> Tensor:
        """The weight of each edge (m,), 1 where there is none."""
        dtype = dtype or torch.get_default_dtype()
        if self.weight is None:
            return torch.ones(self.edges.shape[1], dtype=dtype, device=self.edges.device)
        return self.weight.to(dtype)

    @derived
    def degree(self) -> Tensor:
        """The sum of the weights of the edges that end in each node (n,), which for undirected graphs is the degree."""
        return self._sum(self.edges[1])

    def degree_with(self, loops: bool, dtype: torch.dtype) -> Tensor:
        """The degree of each node (n,), with a loop of weight 1 at nodes that have none if `loops`."""
        graph = self.with_loops() if loops else self
        return torch.zeros(self.nodes, dtype=dtype, device=self.edges.device).index_add_(
            0, graph.edges[1], graph.value(dtype)
        )

    @derived
    def out_degree(self) -> Tensor:
        """The sum of the weights of the edges that leave each node (n,)."""
        return self._sum(self.edges[0])

    def _sum(self, ids: Tensor) -> Tensor:
        value = self.value()
        return value.new_zeros(self.nodes).index_add_(0, ids, value)

    @derived
    def is_undirected(self) -> bool:
        """Whether every edge has its opposite, of the same weight."""
        forward = torch.stack([self.edges[0] * self.nodes + self.edges[1], self.edges[1] * self.nodes + self.edges[0]])
        first, second = (torch.argsort(key, stable=True) for key in forward)
        if not bool((forward[0][first] == forward[1][second]).all()):
            return False
        return self.weight is None or bool(torch.isclose(self.weight[first], self.weight[second]).all())

    @derived
    def has_loops(self) -> bool:
        """Whether some edge ends where it begins."""
        return bool((self.edges[0] == self.edges[1]).any())

    @derived
    def duplicates(self) -> int:
        """How many edges repeat another one."""
        key = self.edges[0] * max(1, self.nodes) + self.edges[1]
        return len(key) - len(key.unique())

    def with_loops(self, weight: float = 1.0) -> "Graph":
        """With one loop at every node: loops that are there are kept, those that are missing get this weight."""

        def make() -> Graph:
            loops = self.edges[0] == self.edges[1]
            there = torch.zeros(self.nodes, dtype=torch.bool, device=self.edges.device)
            there[self.edges[0][loops]] = True
            new = (~there).nonzero()[:, 0]
            weights = None
            if self.weight is not None or weight != 1.0:
                value = self.value(None if self.weight is None else self.weight.dtype)
                weights = torch.cat([value, value.new_full((len(new),), weight)])
            return self._like(torch.cat([self.edges, new.expand(2, -1)], 1), weights)

        return self.kept(("loops", weight), make)

    def without_loops(self) -> "Graph":
        """Without the edges that end where they begin."""
        return self.kept("no loops", lambda: self.keep(self.edges[0] != self.edges[1]))

    def without_duplicates(self) -> "Graph":
        """Each edge once, its weights added up."""
        key, group = torch.unique(self.edges[1] * self.nodes + self.edges[0], return_inverse=True)
        edges = torch.stack([key % max(1, self.nodes), key // max(1, self.nodes)])
        weight = None if self.weight is None else self.weight.new_zeros(len(key)).index_add_(0, group, self.weight)
        return self._like(edges, weight)

    def keep(self, mask: Tensor) -> "Graph":
        """All nodes, and the edges of a mask (m,) or of a list of edge numbers."""
        return self._like(self.edges[:, mask], None if self.weight is None else self.weight[mask])

    def _like(self, edges: Tensor, weight: Tensor | None) -> "Graph":
        return _made(edges, self.nodes, weight, self.member, self.graphs)

    def kept(self, key: Any, make: Any) -> Any:
        """Something derived from this graph, made once."""
        if key not in self._kept:
            with torch.inference_mode(False), torch.no_grad():
                self._kept[key] = make()
        return self._kept[key]

    def normalised(
        self, norm: str = "symmetric", *, loops: bool = True, dtype: torch.dtype | None = None
    ) -> tuple[Pattern, Tensor]:
        r"""The normalised adjacency matrix: its pattern, and its values in the order of the pattern.

        .. math::
            \text{symmetric: } D^{-1/2} A D^{-1/2}, \quad \text{row: } D^{-1} A, \quad \text{column: } A D^{-1}

        with :math:`D = \mathrm{diag}(A 1)`, and A + I in place of A with `loops`. A node of degree 0 gives and gets 0. Kept.
        """
        if norm not in NORMS:
            raise WonderlandError(f"There is no normalisation {norm!r}. Known are {', '.join(NORMS)}.")
        dtype = dtype or torch.get_default_dtype()

        def make() -> tuple[Pattern, Tensor]:
            graph = self.with_loops() if loops else self
            value = graph.value(dtype)
            degree = self.degree_with(loops, dtype)
            if norm == "symmetric":
                root = torch.where(degree > 0, degree.clamp(min=1e-38).rsqrt(), 0.0)
                value = root[graph.edges[1]] * value * root[graph.edges[0]]
            elif norm != "none":
                inverse = torch.where(degree != 0, 1 / torch.where(degree != 0, degree, 1.0), 0.0)
                value = value * inverse[graph.edges[1] if norm == "row" else graph.edges[0]]
            return graph.pattern, graph.sorted_edges(value)

        return self.kept(("normalised", norm, loops, dtype), make)

    def adjacency(self, dtype: torch.dtype | None = None) -> Tensor:
        """A as a dense matrix (n, n); repeated edges add up."""
        value = self.value(dtype)
        return value.new_zeros(self.nodes, self.nodes).index_put((self.edges[1], self.edges[0]), value, accumulate=True)

    def incidence(self) -> Tensor:
        """Which node takes part in which edge (n, m), each undirected edge once: every column sums to 2, loops left out."""
        kept = self.edges[:, self.edges[0] < self.edges[1]] if self.is_undirected else self.edges
        incidence = torch.zeros(self.nodes, kept.shape[1])
        place = torch.arange(kept.shape[1])
        incidence[kept[0], place] = 1.0
        incidence[kept[1], place] = 1.0
        return incidence

    def laplacian(self, kind: str = "combinatorial") -> Tensor:
        r"""Dense (n, n): D - A, I - D^{-1/2} A D^{-1/2} ("normalised") or I - D^{-1} A ("random walk")."""
        if kind not in ("combinatorial", "normalised", "random walk"):
            raise WonderlandError(
                f"There is no Laplacian {kind!r}. Known are combinatorial, normalised and random walk."
            )
        a = self.adjacency()
        if kind == "combinatorial":
            return torch.diag(a.sum(1)) - a
        norm = "symmetric" if kind == "normalised" else "row"
        pattern, value = self.normalised(norm, loops=False)
        dense = value.new_zeros(self.nodes, self.nodes).index_put((pattern.row, pattern.column), value, accumulate=True)
        return torch.diag((a.sum(1) != 0).to(dense.dtype)) - dense

    def is_shift(self, matrix: Tensor) -> bool:
        """Whether a matrix (n, n) is 0 wherever there is no edge, the diagonal left aside."""
        allowed = self.adjacency() != 0
        allowed.fill_diagonal_(True)
        return bool((matrix[~allowed] == 0).all())

    def neighbourhood(self, nodes: Any, hops: int = 1) -> Tensor:
        """The nodes from which these can be reached in at most so many steps, themselves among them, sorted."""
        seen = torch.zeros(self.nodes, dtype=torch.bool)
        seen[torch.as_tensor(nodes).reshape(-1)] = True
        for _ in range(hops):
            seen[self.edges[0][seen[self.edges[1]]]] = True
        return seen.nonzero()[:, 0]

    def power(self, k: int) -> "Graph":
        """The graph of walks of k steps: an edge where there is one, its weight the sum over them of the products of their weights.

        >>> Graph.undirected([(0, 1), (1, 2)]).power(2).adjacency().tolist()
        [[1.0, 0.0, 1.0], [0.0, 2.0, 0.0], [1.0, 0.0, 1.0]]
        """
        if k < 1:
            raise WonderlandError(f"A power of a graph is that of at least 1 step, not {k}.")
        leaving, place = self.pattern.transposed
        value = self.sorted_edges(self.value())[place]
        walked = _made(self.edges, self.nodes, self.value(), self.member, self.graphs).without_duplicates()
        for _ in range(k - 1):
            (source, target), weight = walked.edges, walked.value()
            count = leaving.count[target]
            entry = ranges(leaving.start[target], count)
            ends = torch.stack([torch.repeat_interleave(source, count), leaving.column[entry]])
            longer = self._like(ends, torch.repeat_interleave(weight, count) * value[entry])
            walked = longer.without_duplicates()
        return walked

    def diameter(self) -> float:
        """The longest of all shortest paths, infinite where some pair has none; for graphs of at most 5,000 nodes."""
        if self.nodes > 5000:
            raise WonderlandError(
                f"The diameter of {self.nodes:,} nodes is not computed: it needs a path for each pair, up to 5,000 nodes."
            )
        return float(self.distances(torch.arange(self.nodes)).max()) if self.nodes else 0.0

    def subgraph(self, nodes: Any) -> tuple["Graph", Tensor]:
        """The graph of some nodes, in their order, with the edges among them; and which edges those are."""
        nodes = torch.as_tensor(nodes).reshape(-1)
        place = torch.full((self.nodes,), -1, dtype=torch.long)
        place[nodes] = torch.arange(len(nodes))
        edge = ((place[self.edges[0]] >= 0) & (place[self.edges[1]] >= 0)).nonzero()[:, 0]
        weight = None if self.weight is None else self.weight[edge]
        return _made(place[self.edges[:, edge]], len(nodes), weight, None, 1), edge

    def permuted(self, order: Tensor) -> "Graph":
        """The same graph with its nodes in another order: node i is what node order[i] was."""
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        member = None if self.member is None else self.member[order]
        return Graph(place[self.edges], self.nodes, weight=self.weight, member=member, graphs=self.graphs)

    def components(self) -> Tensor:
        """The connected component of each node (n,), numbered by their first nodes; the direction of edges is ignored."""
        label = torch.arange(self.nodes)
        source, target = self.edges
        while True:
            least = label.scatter_reduce(0, target, label[source], "amin").scatter_reduce(
                0, source, label[target], "amin"
            )
            least = least[least]  # follow the label of the label, so that long paths take few rounds
            if bool((least == label).all()):
                return torch.unique(label, return_inverse=True)[1]
            label = least

    def homophily(self, classes: Any) -> float | None:
        """The share of edges, loops left out, that join nodes of one class (codes (n,), negative for none); None without edges."""
        classes = torch.as_tensor(classes)
        a, b = classes[self.edges[0]], classes[self.edges[1]]
        counted = (self.edges[0] != self.edges[1]) & (a >= 0) & (b >= 0)
        return float((a == b)[counted].double().mean()) if bool(counted.any()) else None

    def distances(self, sources: Any) -> Tensor:
        """Shortest path lengths from nodes (k,) to all nodes: (k, n), infinite where there is no path."""
        sources = torch.as_tensor(sources).reshape(-1)
        far = torch.full((len(sources), self.nodes), float("inf"))
        far[torch.arange(len(sources)), sources] = 0
        reached = far == 0
        for step in range(1, self.nodes + 1):
            new = torch.zeros_like(reached)
            new.index_put_(
                (torch.arange(len(sources))[:, None], self.edges[1][None].expand(len(sources), -1)),
                reached[:, self.edges[0]],
                accumulate=True,
            )
            new &= torch.isinf(far)
            if not bool(new.any()):
                break
            far[new], reached = step, new
        return far

    @derived
    def sizes(self) -> Tensor:
        """How many nodes each graph has (graphs,)."""
        if self.member is None:
            return torch.tensor([self.nodes])
        return torch.bincount(self.member, minlength=self.graphs)

    @property
    def node_graph(self) -> Tensor:
        """The graph of each node (n,): zeros where there is one graph."""
        if self.member is not None:
            return self.member
        return self.kept("member", lambda: torch.zeros(self.nodes, dtype=torch.long, device=self.edges.device))

    @staticmethod
    def batch(graphs: Sequence["Graph"]) -> "Graph":
        """Many graphs as one, with a block-diagonal adjacency matrix.

        >>> both = Graph.batch([Graph([(0, 1)]), Graph([], 3)])
        >>> both, both.member.tolist()
        (<Graph: 2 graphs, 5 nodes, 1 edges>, [0, 0, 1, 1, 1])
        """
        sizes = torch.tensor([graph.nodes for graph in graphs], dtype=torch.long)
        first = sizes.cumsum(0) - sizes
        edges = [graph.edges + int(shift) for graph, shift in zip(graphs, first, strict=True)]
        weighted = any(graph.weight is not None for graph in graphs)
        weight = torch.cat([graph.value() for graph in graphs]) if weighted else None
        joined = torch.cat(edges, 1) if edges else torch.zeros(2, 0, dtype=torch.long)
        member = torch.repeat_interleave(torch.arange(len(graphs)), sizes)
        return _made(joined, int(sizes.sum()), weight, member, len(graphs))

    def to(self, device: Any) -> "Graph":
        """The same graph on a device; itself where it is there already."""
        if torch.device(device) == self.edges.device:
            return self

        def make() -> Graph:
            weight = None if self.weight is None else self.weight.to(device)
            member = None if self.member is None else self.member.to(device)
            return _made(self.edges.to(device), self.nodes, weight, member, self.graphs)

        return self.kept(("device", str(device)), make)


def _made(edges: Tensor, nodes: int, weight: Tensor | None, member: Tensor | None, graphs: int) -> Graph:
    """A graph from parts of one that was checked."""
    graph = Graph.__new__(Graph)
    graph._hold(edges, nodes, weight, member, graphs)
    return graph


def _forms() -> Any:
    """Forms of other libraries, which import this file."""
    from wonderland.core import graph_forms

    return graph_forms


def _pairs(edges: Any) -> Tensor:
    """Edges (2, m) from a tensor (2, m), or from a list of pairs."""
    if isinstance(edges, list | tuple) and not any(isinstance(row, Tensor) for row in edges):
        rows = [tuple(pair) for pair in edges]
        if any(len(pair) != 2 for pair in rows):
            raise WonderlandError("A list of edges holds pairs (source, target).")
        edges = torch.tensor(rows, dtype=torch.long).reshape(-1, 2).t()
    edges = torch.stack(list(edges)) if isinstance(edges, list | tuple) else torch.as_tensor(edges)
    if edges.dim() != 2 or edges.shape[0] != 2:
        raise WonderlandError(
            f"Edges are a tensor (2, m), sources above targets, or a list of pairs, not {tuple(edges.shape)}."
        )
    if edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool:
        raise WonderlandError(f"Edges hold node numbers, not {str(edges.dtype).removeprefix('torch.')}.")
    return edges.long().contiguous()


def _count(edges: Tensor, nodes: int | None) -> int:
    """How many nodes there are; ids outside of them are refused."""
    largest = int(edges.max()) if edges.numel() else -1
    if edges.numel() and int(edges.min()) < 0:
        raise WonderlandError(f"An edge names node {int(edges.min())}: nodes are numbered from 0.")
    if nodes is None:
        return largest + 1
    if largest >= nodes:
        raise WonderlandError(f"An edge names node {largest}, but there are {nodes:,} nodes, numbered from 0.")
    return nodes
