"""Laws of layers on graphs: order of nodes, reach, many graphs as one, and graphs with little in them."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from wonderland.core.graph import Graph
from wonderland.laws.compare import gap
from wonderland.laws.example import Example
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-9
MOST_CENTRES = 16  # nodes whose reach is looked at


@law
def graph_permutation(subject: Subject) -> Verdict:
    r"""The order of nodes and of edges means nothing: :math:`f(Px, PAP^\top) = P f(x, A)`, and :math:`f(x, A)` for outputs of whole graphs.

    The graph is the first `Graph` among the inputs, or the first integer tensor (2, m) as in torch_geometric; an input with a row for
    each edge holds the features of edges.
    """
    given = _Given(subject)
    worst, witness = 0.0, ""
    with torch.no_grad():
        for turn in range(3):
            order = (
                torch.randperm(given.graph.nodes, generator=subject.generator)
                if turn
                else torch.arange(given.graph.nodes)
            )
            edges = torch.randperm(given.graph.edges.shape[1], generator=subject.generator)
            moved = given.graph.permuted(order)
            moved = _with_edges(moved, moved.edges[:, edges], None if moved.weight is None else moved.weight[edges])
            output = subject.run(
                example=given.example(subject.x[order], moved, edges), when="after nodes and edges changed places"
            )
            expected = subject.base[order] if given.of_nodes else subject.base
            error, amount, place = gap(output, expected)
            if not error <= worst:
                noun = "edges" if turn == 0 else "nodes"
                worst, witness = error, f"{subject.place(place)} differs by {amount:.2g} when {noun} changed places"
    return subject.verdict(worst, TOLERANCE * subject.tolerance_factor, witness)


@law
def graph_locality(subject: Subject) -> Verdict:
    r"""What is more hops away than the layer reaches has no influence: :math:`\partial y_i / \partial x_j = 0` unless a path of at most
    `hops` edges leads from j to i. `hops` is an attribute of the layer; features change, edges do not.
    """
    hops, given = getattr(subject.block, "hops", None), _Given(subject)
    if hops is None:
        raise NotApplicable("the layer names no number of hops")
    if not given.of_nodes:
        raise NotApplicable("the output has no row for each node")
    x = subject.x.clone().requires_grad_()
    with torch.enable_grad():
        output = subject.run(x)
        size, worst, witness, inside = 0.0, 0.0, "", True
        for node in (
            torch.linspace(0, given.graph.nodes - 1, min(MOST_CENTRES, given.graph.nodes)).long().unique().tolist()
        ):
            total = (
                output[node] * torch.randn(output[node].shape, generator=subject.generator, dtype=output.dtype)
            ).sum()
            (grad,) = torch.autograd.grad(total, x, retain_graph=True, allow_unused=True)
            grad = torch.zeros_like(x) if grad is None else grad
            amount = grad.flatten(1).abs().amax(1)
            far = torch.ones(given.graph.nodes, dtype=torch.bool)
            far[given.graph.neighbourhood(node, int(hops))] = False
            inside &= not bool(far.any())
            size = max(size, float(amount.max()))
            if bool(far.any()) and not float(amount[far].max()) <= worst:
                other = int(torch.where(far, amount, -1.0).argmax())
                worst = float(amount[far].max())
                witness = (
                    f"output {node} moved when node {other} changed, from which no path of {hops} edges leads there"
                )
    if inside:
        raise NotApplicable(f"every node lies within {hops} hops of every other")
    return subject.verdict(worst / (size or 1.0), 1e-12 * subject.tolerance_factor, witness)


@law
def graph_batching(subject: Subject) -> Verdict:
    """Many graphs as one block-diagonal graph give what each gives alone, a single node and the same graph with other features among them."""
    given = _Given(subject)
    single = Graph([], 1)
    other, lone = subject.x.flip(0) * 0.5 + 1, subject.x[:1] * 2
    whole = Graph.batch([given.graph, given.graph, single])
    rows = torch.cat([torch.arange(given.graph.edges.shape[1])] * 2)
    with torch.no_grad():
        together = subject.run(
            example=given.example(torch.cat([subject.x, other, lone]), whole, rows), when="on a batch of graphs"
        )
        second = subject.run(example=given.example(other, given.graph, None), when="on a second graph")
        third = subject.run(example=given.example(lone, single, rows[:0]), when="on a single node")
        error, amount, place = gap(together, torch.cat([subject.base, second, third]))
    witness = f"{subject.place(place)} differs by {amount:.2g} between a batch of three graphs and each alone"
    return subject.verdict(error, 1e-6, witness if error else "")


@law
def graph_edge_cases(subject: Subject) -> Verdict:
    """Isolated nodes, a graph without edges, a single node and a graph without nodes have finite outputs with a row each."""
    given = _Given(subject)
    none = torch.zeros(0, dtype=torch.long)
    width = subject.x[:1]
    lonely = Graph(given.graph.edges, given.graph.nodes + 1, weight=given.graph.weight)
    cases: list[tuple[str, Tensor, Graph, Tensor | None]] = [
        ("with an isolated node", torch.cat([subject.x, width]), lonely, None),
        ("without edges", subject.x, Graph([], given.graph.nodes), none),
        ("with a single node", width, Graph([], 1), none),
        ("without nodes", width[:0], Graph([], 0), none),
    ]
    with torch.no_grad():
        for words, x, graph, edges in cases:
            output = subject.run(example=given.example(x, graph, edges), when=f"on a graph {words}")
            rows = len(x) if given.of_nodes else subject.base.shape[0]
            if output.shape[0] != rows:
                return subject.verdict(
                    float("inf"), 0.0, f"a graph {words} gives {output.shape[0]} rows where {rows} belong"
                )
            if not bool(torch.isfinite(output).all()):
                return subject.verdict(float("inf"), 0.0, f"a graph {words} gives an output that is not finite")
    return subject.verdict(0.0, 0.0)


class _Given:
    """The graph among the inputs of an example, and the example with another one in its place."""

    def __init__(self, subject: Subject):
        self.subject = subject
        inputs = {**dict(enumerate(subject.example.args)), **subject.example.kwargs}
        self.place, self.plain, graph = None, False, None
        for place, value in inputs.items():
            if isinstance(value, Graph):
                self.place, graph = place, value
                break
            if _is_edge_index(value) and place != subject.example.place:
                self.place, self.plain, graph = place, True, Graph(value, len(subject.x))
                break
        if graph is None or subject.x.shape[0] != graph.nodes:
            raise NotApplicable(
                "there is no graph among the inputs, with a row of the first input for each of its nodes"
            )
        self.graph: Graph = graph
        count = graph.edges.shape[1]
        self.edge_inputs = {
            place for place, value in inputs.items()
            if isinstance(value, Tensor) and place not in (self.place, subject.example.place)
            and value.dim() >= 1 and len(value) == count and value.is_floating_point()
        }  # fmt: skip

    @property
    def of_nodes(self) -> bool:
        """Whether the output has a row for each node."""
        return self.subject.base.dim() > 0 and self.subject.base.shape[0] == self.graph.nodes != 1

    def example(self, x: Tensor, graph: Graph, edges: Tensor | None) -> Example:
        """The example with other features and another graph, whose edges have the features of these."""

        def new(place: Any, value: Any) -> Any:
            if place == self.subject.example.place:
                return x
            if place == self.place:
                return graph.edges if self.plain else graph
            return value[edges] if edges is not None and place in self.edge_inputs else value

        old = self.subject.example
        args = tuple(new(place, value) for place, value in enumerate(old.args))
        return replace(old, args=args, kwargs={name: new(name, value) for name, value in old.kwargs.items()})


def _with_edges(graph: Graph, edges: Tensor, weight: Tensor | None) -> Graph:
    return Graph(edges, graph.nodes, weight=weight, member=graph.member, graphs=graph.graphs)


def _is_edge_index(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.long and value.dim() == 2 and value.shape[0] == 2
