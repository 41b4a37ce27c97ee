"""Message passing in general, and with a matrix for each edge."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.ops.segment import segment_max, segment_mean, segment_min, segment_sum

REDUCE = {"sum": segment_sum, "mean": segment_mean, "max": segment_max, "min": segment_min}


def reduction(name: str) -> Callable[[Tensor, Tensor, int], Tensor]:
    """A way to reduce messages, by its name."""
    if name not in REDUCE:
        raise WonderlandError(f"Messages are reduced by {', '.join(REDUCE)}, not {name!r}.")
    return REDUCE[name]


@part
class MessagePassing(GraphLayer):
    r"""Any message, any reduction, any update.

    .. math::
        h_i = \psi\big(x_i,\; \operatorname{reduce}_{j \in N(i)} M(x_i, x_j, e_{ij})\big)

    `message(target, source, edge)` gives (m, k) from (m, d), (m, d) and edge features (or None); `update(x, messages)` gives
    (n, out). Without them both are MLPs of their inputs side by side. Shapes: x (n, d), edge (m, edge_dim) -> (n, out).
    Book: Alice 12.3. Paper: Gilmer et al., 2017.

    >>> layer = MessagePassing(3, 2, message=lambda i, j, e: j, update=lambda x, m: m)
    >>> layer(torch.tensor([[1.0, 2, 3], [0, 0, 0]]), Graph([(0, 1)]))[1]
    tensor([1., 2., 3.])
    """

    hops = 1

    def __init__(
        self,
        dim: int,
        out: int,
        *,
        edge_dim: int = 0,
        reduce: str = "sum",
        message: Callable[..., Tensor] | None = None,
        update: Callable[..., Tensor] | None = None,
    ):
        super().__init__()
        self.reduce, self._message, self._update = reduction(reduce), message, update
        if message is None:
            self.messages = nn.Sequential(nn.Linear(2 * dim + edge_dim, out), nn.ReLU(), nn.Linear(out, out))
        if update is None:
            self.updates = nn.Sequential(nn.Linear(dim + out, out), nn.ReLU(), nn.Linear(out, out))

    def forward(self, x: Tensor, graph: Graph, edge: Tensor | None = None) -> Tensor:
        check(self, x, graph, edge)
        source, target = graph.edges
        ends = (x[target], x[source])
        if self._message is not None:
            message = self._message(*ends, edge)
        else:
            message = self.messages(torch.cat([*ends, *([] if edge is None else [edge])], 1))
        total = self.reduce(message, target, graph.nodes)
        return self._update(x, total) if self._update is not None else self.updates(torch.cat([x, total], 1))


@part
class EdgeNetwork(GraphLayer):
    r"""A matrix for each edge, made by a network from its features (NNConv, the layer of MPNN).

    .. math::
        h_i = V x_i + b + \operatorname{reduce}_{j \in N(i)} f(e_{ij})\, x_j, \qquad f(e) \in R^{d \times out}

    Messages are computed as :math:`\sum_k f_k(e) (W_k x_j)` where the network's last layer is linear, which never forms the
    matrices of all edges at once. Shapes: x (n, d), edge (m, edge_dim) -> (n, out). Paper: Gilmer et al., 2017.

    >>> EdgeNetwork(3, 2, edge_dim=1)(torch.randn(2, 3), Graph([(0, 1)]), torch.ones(1, 1)).shape
    torch.Size([2, 2])
    """

    hops = 1

    def __init__(
        self,
        dim: int,
        out: int,
        *,
        edge_dim: int,
        hidden: int = 32,
        reduce: str = "sum",
        network: nn.Module | None = None,
    ):
        super().__init__()
        self.dim, self.out, self.reduce = dim, out, reduction(reduce)
        default = nn.Sequential(nn.Linear(edge_dim, hidden), nn.ReLU(), nn.Linear(hidden, dim * out))
        self.network = default if network is None else network
        self.own = nn.Linear(dim, out, bias=False)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x: Tensor, graph: Graph, edge: Tensor) -> Tensor:
        check(self, x, graph, edge)
        source, target = graph.edges
        last = self.network[-1] if isinstance(self.network, nn.Sequential) else None
        if isinstance(last, nn.Linear) and last.in_features <= 2 * self.out:
            features = self.network[:-1](edge)  # pyright: ignore
            kernel = last.weight.view(self.dim, self.out, -1)  # (d, out, k)
            pieces = torch.einsum("nd,dok->nko", x, kernel)[source]
            message = torch.einsum("mko,mk->mo", pieces, features)
            if last.bias is not None:
                message = message + (x @ last.bias.view(self.dim, self.out))[source]
        else:
            message = torch.einsum("md,mdo->mo", x[source], self.network(edge).view(-1, self.dim, self.out))
        return self.own(x) + self.reduce(message, target, graph.nodes) + self.bias


@part
class EdgeUpdate(GraphLayer):
    r"""New features of edges from their own and those of their ends: :math:`e_{ij} \leftarrow e_{ij} + \mathrm{MLP}([e_{ij} \| h_i \| h_j])`.

    Shapes: x (n, d), edge (m, edge_dim) -> (m, edge_dim). Book: Alice 12.3.

    >>> EdgeUpdate(3, 2)(torch.randn(2, 3), Graph([(0, 1)]), torch.ones(1, 2)).shape
    torch.Size([1, 2])
    """

    def __init__(self, dim: int, edge_dim: int, *, residual: bool = True):
        super().__init__()
        self.residual = residual
        wide = edge_dim + 2 * dim
        self.mlp = nn.Sequential(nn.Linear(wide, edge_dim), nn.ReLU(), nn.Linear(edge_dim, edge_dim))

    def forward(self, x: Tensor, graph: Graph, edge: Tensor) -> Tensor:
        check(self, x, graph, edge)
        update = self.mlp(torch.cat([edge, x[graph.edges[1]], x[graph.edges[0]]], 1))
        return edge + update if self.residual else update
