"""Networks for graphs: answers for nodes, for pairs of nodes, or for whole graphs, from one stack of graph layers."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.core.graph_input import GraphInput
from wonderland.core.pattern import SparseRows
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.graph.attention import GAT, GATv2
from wonderland.nn.graph.convolution import GraphConvolution
from wonderland.nn.graph.isomorphism import GIN, GINE
from wonderland.nn.graph.layer import drop_features, lean, project
from wonderland.nn.graph.propagation import PersonalisedPropagation
from wonderland.nn.graph.readout import Readout
from wonderland.nn.graph.sage import GraphSAGE
from wonderland.nn.graph.sampling import in_blocks
from wonderland.nn.graph.transformer import EdgeAttention
from wonderland.nn.graph.virtual_node import VirtualNode
from wonderland.ops.over_time import is_exporting

LAYERS = ("gcn", "gat", "gatv2", "sage", "gin", "transformer", "appnp", "mlp")
NETS = ("models.NodeNet", "models.LinkNet", "models.WholeGraphNet", "models.MPNN")


class PlainLayer(nn.Module):
    """A linear layer on each node alone."""

    def __init__(self, dim: int, out: int):
        super().__init__()
        self.project = nn.Linear(dim, out)

    def forward(self, x: Any, graph: Graph, edge: Tensor | None = None) -> Tensor:
        return project(self.project, x)


def make_layer(
    name: str, dim: int, out: int, *, heads: int = 1, join: bool = True, dropout: float = 0.0, edge_dim: int = 0
) -> nn.Module:
    """A graph layer by its short name; `out` is the whole width, of all heads."""
    if name not in LAYERS:
        raise WonderlandError(f"There is no graph layer {name!r}. Known are {', '.join(LAYERS)}.")
    each = out // heads if join else out
    edges = edge_dim or None
    if name in ("gat", "gatv2"):
        kind = GAT if name == "gat" else GATv2
        return kind(dim, each, heads=heads, join=join, dropout=dropout, edge_dim=edges)
    if name == "transformer":
        return EdgeAttention(dim, each, heads=heads, join=join, dropout=dropout, edge_dim=edges)
    if name == "gin":
        return GINE(dim, out, edge_dim=edge_dim) if edges else GIN(dim, out)
    return {"gcn": GraphConvolution, "sage": GraphSAGE}.get(name, PlainLayer)(dim, out)


TAKES_EDGES = (GAT, GATv2, EdgeAttention, GINE)
WIDE_MESSAGES = (GATv2, EdgeAttention, GINE)  # layers that make a vector for each edge
MOST_MESSAGES = (
    1 << 27
)  # numbers of messages at once without gradients; above that layers are applied block after block


def apply_layer(layer: nn.Module, x: Any, graph: Graph, edge: Tensor | None) -> Tensor:
    """One layer; without gradients, on a graph whose messages would take much memory, block after block with equal results."""
    given = (edge,) if edge is not None and isinstance(layer, TAKES_EDGES) else ()
    if isinstance(layer, WIDE_MESSAGES) and not torch.is_grad_enabled() and graph.member is None and not is_exporting():
        messages = graph.edges.shape[1] * x.shape[1]
        if messages > MOST_MESSAGES:
            return in_blocks(layer, x, graph, *given, size=max(1, graph.nodes * MOST_MESSAGES // (4 * messages)))
    return layer(x, graph, *given)


@part
class NodeNet(Checked, nn.Module):
    r"""A stack of graph layers whose last one gives the answer for each node, as in the papers on citation graphs.

    .. math::
        H_0 = X, \qquad H_{k} = \phi(\mathrm{layer}_k(\mathrm{dropout}(H_{k-1}), G)), \qquad Y = \mathrm{layer}_K(H_{K-1}, G)

    `layer` is gcn, gat, gatv2, sage, gin, transformer, mlp, or appnp: an MLP whose answers are then propagated `steps` times and
    drawn back with `alpha`. Shapes: x (n, features), dense or sparse -> (n, outputs).

    >>> NodeNet(5, 3)(torch.randn(4, 5), Graph.undirected([(0, 1), (2, 3)])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        features: int,
        outputs: int,
        *,
        layer: str = "gcn",
        dim: int = 16,
        depth: int = 2,
        heads: int = 1,
        last_heads: int = 1,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        residual: bool = False,
        steps: int = 10,
        alpha: float = 0.1,
        edge_dim: int = 0,
    ):
        super().__init__()
        if depth < 1:
            raise WonderlandError(f"A network has at least one layer, not {depth}.")
        if dim % heads:
            raise WonderlandError(f"A width of {dim} cannot be cut into {heads} heads.")
        self.dropout, self.outputs = dropout, outputs
        wide = [features, *[dim] * (depth - 1), outputs]
        self.layers = nn.ModuleList(
            make_layer(
                layer,
                wide[k],
                wide[k + 1],
                heads=heads if k < depth - 1 else last_heads,
                join=k < depth - 1,
                dropout=attention_dropout,
                edge_dim=edge_dim,
            )
            for k in range(depth)
        )
        self.skips = nn.ModuleList(nn.Linear(wide[k], wide[k + 1]) for k in range(depth)) if residual else None
        self.activation = F.elu if layer in ("gat", "gatv2") else F.relu
        self.propagate = PersonalisedPropagation(steps, alpha, dropout=attention_dropout) if layer == "appnp" else None

    def forward(self, x: Any, graph: Any = None, edge: Tensor | None = None) -> Tensor:
        if isinstance(x, GraphInput):
            h = self(x.x, x.graph, x.edge)
            return h if x.rows is None else h[x.rows]
        x = lean(x)
        for k, layer in enumerate(self.layers):
            x = drop_features(x, self.dropout, self.training)
            h = apply_layer(layer, x, graph, edge)
            if self.skips is not None:
                h = h + project(self.skips[k], x)  # pyright: ignore
            x = h if k == len(self.layers) - 1 else self.activation(h)
        return x if self.propagate is None else self.propagate(x, graph)


@part
class GraphStack(Checked, nn.Module):
    """Features to a width, layers with batch norm and residuals, and what every layer gave, added up: (n, features) -> (n, dim).

    With `virtual` a virtual node joins the nodes of each graph between the layers.

    >>> GraphStack(5, 8)(torch.randn(4, 5), Graph.undirected([(0, 1), (2, 3)])).shape
    torch.Size([4, 8])
    """

    def __init__(
        self,
        features: int,
        dim: int,
        *,
        layer: str = "gin",
        depth: int = 3,
        heads: int = 1,
        dropout: float = 0.0,
        edge_dim: int = 0,
        virtual: bool = False,
        residual: bool = True,
    ):
        super().__init__()
        self.dropout, self.residual = dropout, residual
        self.first = nn.Linear(features, dim)
        self.layers = nn.ModuleList(make_layer(layer, dim, dim, heads=heads, edge_dim=edge_dim) for _ in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm1d(dim) for _ in range(depth))
        self.virtual = nn.ModuleList(VirtualNode(dim) for _ in range(depth - 1)) if virtual else None

    def states(self, x: Tensor | SparseRows, graph: Graph, edge: Tensor | None = None) -> list[Tensor]:
        """What each layer gives (n, dim), the projected features first."""
        h, state = project(self.first, drop_features(x, self.dropout / 2, self.training)), None
        given = [h]
        for k, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            update = apply_layer(layer, h, graph, edge)
            update = F.dropout(F.relu(norm(update)), self.dropout, self.training)
            h = h + update if self.residual else update
            if self.virtual is not None and k < len(self.virtual):
                h, state = self.virtual[k](h, graph, state)
            given.append(h)
        return given

    def forward(self, x: Tensor | SparseRows, graph: Graph, edge: Tensor | None = None) -> Tensor:
        return torch.stack(self.states(x, graph, edge)).sum(0)


@part
class WholeGraphNet(Checked, nn.Module):
    r"""A stack of layers, every layer read out over each graph, and a head: (n, features) -> (graphs, outputs).

    .. math::
        y_g = \sum_k \mathrm{head}_k\big(\operatorname{readout}_{i \in g} H_{k, i}\big)

    >>> WholeGraphNet(5, 3)(torch.randn(4, 5), Graph.batch([Graph([(0, 1)]), Graph([], 2)])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        features: int,
        outputs: int,
        *,
        layer: str = "gin",
        dim: int = 32,
        depth: int = 4,
        heads: int = 1,
        dropout: float = 0.5,
        readout: Sequence[str] = ("sum",),
        edge_dim: int = 0,
        virtual: bool = False,
        residual: bool = False,
    ):
        super().__init__()
        self.dropout = dropout
        self.stack = GraphStack(
            features, dim, layer=layer, depth=depth, heads=heads, edge_dim=edge_dim, virtual=virtual, residual=residual
        )
        self.readout = Readout(readout)
        wide = dim * len(self.readout.how)
        self.heads = nn.ModuleList(nn.Linear(wide, outputs) for _ in range(depth + 1))
        for head in self.heads:
            nn.init.normal_(head.get_parameter("weight"), std=0.1 * wide**-0.5)  # sums over nodes are large

    def forward(self, x: Any, graph: Any = None, edge: Tensor | None = None) -> Tensor:
        if isinstance(x, GraphInput):
            return self(x.x, x.graph, x.edge)
        given = self.stack.states(x, graph, edge)
        pieces = [
            F.dropout(head(self.readout(h, graph)), self.dropout, self.training)
            for head, h in zip(self.heads, given, strict=True)
        ]
        return torch.stack(pieces).sum(0)


@part
class LinkNet(Checked, nn.Module):
    r"""Two nodes' states, and an MLP that says what joins them.

    .. math::
        y_{ij} = \mathrm{MLP}([h_i \odot h_j \,\|\, |h_i - h_j|]) \quad\text{or, directed,}\quad \mathrm{MLP}([h_i \,\|\, h_j \,\|\, h_i \odot h_j])

    The first form is the same for (i, j) and (j, i). Features of pairs stand beside them. Shapes: x (n, features), pairs (b, 2),
    pair (b, pair_dim) -> (b, outputs).

    >>> LinkNet(5, 2)(torch.randn(4, 5), Graph([(0, 1)], 4), torch.tensor([[0, 1], [2, 3]])).shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        features: int,
        outputs: int,
        *,
        layer: str = "gcn",
        dim: int = 64,
        depth: int = 2,
        dropout: float = 0.3,
        directed: bool = False,
        pair_dim: int = 0,
    ):
        super().__init__()
        self.directed, self.pair_dim = directed, pair_dim
        self.stack = GraphStack(features, dim, layer=layer, depth=depth, dropout=dropout)
        self.head = nn.Sequential(
            nn.Linear((3 if directed else 2) * dim + pair_dim, dim),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(dim, outputs),
        )

    def forward(self, x: Any, graph: Any = None, pairs: Any = None, pair: Tensor | None = None) -> Tensor:
        if isinstance(x, GraphInput):
            return self(x.x, x.graph, x.rows, x.pair)
        h = self.stack(x, graph)
        a, b = h[pairs[:, 0]], h[pairs[:, 1]]
        joined = [a, b, a * b] if self.directed else [a * b, (a - b).abs()]
        if self.pair_dim:
            joined.append(a.new_zeros(a.shape[0], self.pair_dim) if pair is None else pair.to(a.dtype))
        return self.head(torch.cat(joined, 1))


@part
class GraphNet(Checked, nn.Module):
    """Several networks side by side that answer for the rows of a `GraphInput`: (members, rows, outputs).

    `nets` are specs of `NodeNet`, `LinkNet` or `WholeGraphNet` without features and outputs; each learns alone, and what they
    answer together is decided by the task.

    >>> net = GraphNet(5, 3, nets=[NodeNet.spec(), NodeNet.spec(layer="mlp")])
    >>> net(GraphInput(Graph([(0, 1)]), torch.randn(2, 5), rows=torch.tensor([1]))).shape
    torch.Size([2, 1, 3])
    """

    takes_specs = True

    def __init__(self, features: int, outputs: int, *, nets: Sequence[Any] | None = None):
        super().__init__()
        nets = [NodeNet.spec()] if nets is None else nets
        if not nets:
            raise WonderlandError("GraphNet needs at least one network.")
        for net in nets:
            name = getattr(net, "name", type(net).__name__)
            if name not in NETS:
                known = ", ".join(each.removeprefix("models.") for each in NETS)
                raise WonderlandError(f"GraphNet holds specs of {known}, not {name}.")
        self.nets = nn.ModuleList(net.build(features=features, outputs=outputs) for net in nets)
        self.members = len(self.nets)

    def forward(self, given: Any) -> Tensor:
        return torch.stack([net(given) for net in self.nets])
