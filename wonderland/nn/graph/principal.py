"""PNA: several ways to summarise neighbours at once, each scaled by the degree."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check
from wonderland.ops.segment import segment_max, segment_mean, segment_min, segment_sum

REDUCE = ("mean", "min", "max", "std", "sum", "var")
SCALE = ("identity", "amplification", "attenuation", "linear", "inverse_linear")


@part
class PNA(GraphLayer):
    r"""Principal neighbourhood aggregation.

    .. math::
        h_i = U\Big[x_i \,\Big\|\, \big(1, \tfrac{\log(d_i + 1)}{\delta}, \tfrac{\delta}{\log(d_i + 1)}\big) \otimes
        (\mathrm{mean}, \mathrm{min}, \mathrm{max}, \mathrm{std})_{j \in N(i)} M[x_i \| x_j \| e_{ij}]\Big]

    `degrees` says how many training nodes have 0, 1, 2, ... neighbours; :math:`\delta` is the mean of :math:`\log(d + 1)`.
    Shapes: x (n, d), edge (m, edge_dim) -> (n, out). Paper: Corso et al., 2020.

    >>> PNA(3, 2, degrees=[0, 2])(torch.randn(2, 3), Graph.undirected([(0, 1)])).shape
    torch.Size([2, 2])
    """

    hops = 1

    def __init__(
        self,
        dim: int,
        out: int,
        *,
        degrees: Sequence[int],
        reduce: Sequence[str] = ("mean", "min", "max", "std"),
        scale: Sequence[str] = ("identity", "amplification", "attenuation"),
        edge_dim: int | None = None,
    ):
        super().__init__()
        for name in (*reduce, *scale):
            if name not in (*REDUCE, *SCALE):
                raise WonderlandError(
                    f"PNA reduces by {', '.join(REDUCE)} and scales by {', '.join(SCALE)}, not {name!r}."
                )
        if sum(degrees) <= 0:
            raise WonderlandError("PNA needs the degrees of training nodes: how many have 0, 1, 2, ... neighbours.")
        self.reduce, self.scale = tuple(reduce), tuple(scale)
        total = sum(degrees)
        self.mean_log = sum(math.log(d + 1) * count for d, count in enumerate(degrees)) / total
        self.mean_degree = sum(d * count for d, count in enumerate(degrees)) / total
        self.edge = None if edge_dim is None else nn.Linear(edge_dim, dim)
        self.message = nn.Linear((2 if edge_dim is None else 3) * dim, dim)
        self.update = nn.Linear((len(self.reduce) * len(self.scale) + 1) * dim, out)
        self.mix = nn.Linear(out, out)

    def forward(self, x: Tensor, graph: Graph, edge: Tensor | None = None) -> Tensor:
        check(self, x, graph, edge)
        source, target = graph.edges
        pieces = [x[target], x[source]]
        if self.edge is not None and edge is not None:
            pieces.append(self.edge(edge))
        message = self.message(torch.cat(pieces, 1))
        summary = torch.cat([self._reduced(name, message, target, graph.nodes) for name in self.reduce], 1)
        degree = torch.bincount(target, minlength=graph.nodes).to(x.dtype)[:, None]
        scaled = torch.cat([self._scaled(name, summary, degree) for name in self.scale], 1)
        return self.mix(self.update(torch.cat([x, scaled], 1)))

    def _reduced(self, name: str, message: Tensor, target: Tensor, nodes: int) -> Tensor:
        plain = {"mean": segment_mean, "min": segment_min, "max": segment_max, "sum": segment_sum}
        if name in plain:
            return plain[name](message, target, nodes)
        variance = segment_mean(message.square(), target, nodes) - segment_mean(message, target, nodes).square()
        if name == "var":
            return variance
        spread = variance.clamp(min=1e-5).sqrt()
        return spread.masked_fill(spread <= math.sqrt(1e-5), 0.0)

    def _scaled(self, name: str, summary: Tensor, degree: Tensor) -> Tensor:
        if name == "amplification":
            return summary * ((degree + 1).log() / self.mean_log)
        if name == "attenuation":
            return summary * (self.mean_log / (degree.clamp(min=1) + 1).log())
        if name == "linear":
            return summary * (degree / self.mean_degree)
        return summary * (self.mean_degree / degree.clamp(min=1)) if name == "inverse_linear" else summary
