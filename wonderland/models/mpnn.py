"""MPNN: messages along edges of several kinds into a recurrent state of each node, read out for the whole graph."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.graph_input import GraphInput
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.graph.layer import project
from wonderland.nn.graph.message_passing import EdgeNetwork, MessagePassing
from wonderland.nn.graph.readout import Set2Set


@part
class MPNN(Checked, nn.Module):
    r"""The message passing network for molecules.

    .. math::
        m_i = \mathrm{ReLU}\Big(\mathrm{EdgeNetwork}\big(h_i, \{(h_j, e_{ij})\}_{j \in N(i)}\big)\Big), \qquad
        h_i \leftarrow \mathrm{GRU}(m_i, h_i), \qquad y_g = \mathrm{MLP}\big(\mathrm{Set2Set}(\{h_i\}_{i \in g})\big)

    The rounds share their weights. Without features of edges (`edge_dim` 0) a message is an MLP of both ends.
    Shapes: x (n, features), edge (m, edge_dim) -> (graphs, outputs). Paper: Gilmer et al., 2017.

    >>> import torch
    >>> from wonderland.core.graph import Graph
    >>> MPNN(5, 3, edge_dim=2)(torch.randn(4, 5), Graph.undirected([(0, 1), (2, 3)]), torch.randn(4, 2)).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        features: int,
        outputs: int,
        *,
        dim: int = 64,
        rounds: int = 3,
        edge_dim: int = 0,
        hidden: int = 32,
        dropout: float = 0.0,
        reads: int = 3,
    ):
        super().__init__()
        self.rounds, self.dropout, self.edge_dim = rounds, dropout, edge_dim
        self.first = nn.Linear(features, dim)
        layer = EdgeNetwork(dim, dim, edge_dim=edge_dim, hidden=hidden, reduce="mean") if edge_dim else None
        self.message = MessagePassing(dim, dim, reduce="mean") if layer is None else layer
        self.update = nn.GRUCell(dim, dim)
        self.readout = Set2Set(dim, reads)
        self.head = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Dropout(dropout), nn.Linear(dim, outputs))

    def forward(self, x: Any, graph: Any = None, edge: Tensor | None = None) -> Tensor:
        if isinstance(x, GraphInput):
            return self(x.x, x.graph, x.edge)
        h = F.relu(project(self.first, x))
        given = (edge,) if self.edge_dim else ()
        for _ in range(self.rounds):
            message = F.relu(self.message(F.dropout(h, self.dropout, self.training), graph, *given))
            h = self.update(message, h)
        return self.head(self.readout(h, graph))
