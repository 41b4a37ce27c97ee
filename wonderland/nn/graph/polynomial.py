"""Filters that are polynomials of the graph: several hops in one layer, by repeated sparse products."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check, glorot, project
from wonderland.ops.sparse_product import sparse_product


@part
class PolynomialConvolution(GraphLayer):
    r"""A polynomial of the adjacency matrix without loops.

    .. math::
        H = \sum_{k=0}^{K} A^k X W_k + b, \qquad A^k X = A (A^{k-1} X)

    Powers of A are never formed. Shapes: x (n, d) -> (n, out). Book: Alice 12.2.

    >>> PolynomialConvolution(3, 2, order=2)(torch.randn(3, 3), Graph.undirected([(0, 1), (1, 2)])).shape
    torch.Size([3, 2])
    """

    def __init__(self, dim: int, out: int, *, order: int = 2, norm: str = "symmetric"):
        super().__init__()
        self.norm, self.hops = norm, order
        self.project = nn.ModuleList(nn.Linear(dim, out, bias=False) for _ in range(order + 1))
        self.bias = nn.Parameter(torch.zeros(out))
        glorot(*(linear.weight for linear in self.project.children()))  # pyright: ignore

    def forward(self, x: Any, graph: Graph) -> Tensor:
        check(self, x, graph)
        pattern, value = graph.normalised(self.norm, loops=False, dtype=x.dtype)
        projected = [project(linear, x) for linear in self.project]  # pyright: ignore
        h = projected[-1]
        for term in reversed(projected[:-1]):  # Horner: all products have the width of the output
            h = term + sparse_product(pattern, value, h)
        return h + self.bias


@part
class Chebyshev(GraphLayer):
    r"""Chebyshev polynomials of the scaled Laplacian.

    .. math::
        H = \sum_{k=0}^{K-1} T_k(\hat L) X W_k + b, \qquad \hat L = \tfrac{2}{\lambda} L - I, \quad
        T_k = 2 \hat L T_{k-1} - T_{k-2}

    with L the symmetric normalised Laplacian of the graph without loops, and `largest` its largest eigenvalue :math:`\lambda`
    (2 bounds it). Shapes: x (n, d) -> (n, out). Paper: Defferrard et al., 2016.

    >>> Chebyshev(3, 2, order=3)(torch.randn(3, 3), Graph.undirected([(0, 1), (1, 2)])).shape
    torch.Size([3, 2])
    """

    def __init__(self, dim: int, out: int, *, order: int = 3, largest: float = 2.0):
        super().__init__()
        self.largest, self.hops = largest, order - 1
        self.project = nn.ModuleList(nn.Linear(dim, out, bias=False) for _ in range(order))
        self.bias = nn.Parameter(torch.zeros(out))
        glorot(*(linear.weight for linear in self.project.children()))  # pyright: ignore

    def forward(self, x: Any, graph: Graph) -> Tensor:
        check(self, x, graph)
        x = x if isinstance(x, Tensor) else x.dense()
        pattern, value = graph.without_loops().normalised("symmetric", loops=False, dtype=x.dtype)
        scale = 2 / self.largest

        def shift(h: Tensor) -> Tensor:
            moved = sparse_product(pattern, value, h) * -scale
            return moved if scale == 1 else moved + (scale - 1) * h

        before, now = x, x
        total = self.project[0](x)
        for k, linear in enumerate(self.project[1:]):  # pyright: ignore
            before, now = now, shift(now) if k == 0 else 2 * shift(now) - before
            total = total + linear(now)
        return total + self.bias
