"""Implicit graph layer: the output is a fixed point, as if infinitely many layers with the same weights were applied."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.graph import Graph
from wonderland.nn.graph.layer import GraphLayer, check, glorot, project
from wonderland.ops.sparse_product import sparse_product


@part
class ImplicitGraph(GraphLayer):
    r"""The equilibrium of a graph convolution that is fed the same input again and again.

    .. math::
        Z^* = \tanh\big(\hat A Z^* W + X U + b\big), \qquad \|W\|_2 \le \kappa < 1

    W is scaled down to a norm of at most :math:`\kappa`; with :math:`\|\hat A\|_2 \le 1` the equilibrium is unique and iterating
    finds it. Gradients come from the implicit function theorem: the same kind of iteration solves
    :math:`g = (\partial f / \partial Z)^\top g + \partial L / \partial Z^*`, so memory does not grow with the number of
    iterations. Shapes: x (n, d) -> (n, out). Book: Alice 13.2.1. Paper: Gu et al., 2020.

    >>> ImplicitGraph(3, 2)(torch.randn(2, 3), Graph.undirected([(0, 1)])).shape
    torch.Size([2, 2])
    """

    def __init__(self, dim: int, out: int, *, kappa: float = 0.9, steps: int = 300, tolerance: float = 1e-6):
        super().__init__()
        self.kappa, self.steps, self.tolerance = kappa, steps, tolerance
        self.weight = nn.Parameter(torch.empty(out, out))
        self.project = nn.Linear(dim, out)
        glorot(self.weight, self.project.weight)

    def contraction(self) -> Tensor:
        """W, scaled so that the spectral norm is at most kappa."""
        size = torch.linalg.matrix_norm(self.weight, 2)
        return self.weight * (self.kappa / size).clamp(max=1.0)

    def forward(self, x: Any, graph: Graph) -> Tensor:
        check(self, x, graph)
        pattern, value = graph.normalised("symmetric", dtype=x.dtype)
        given, weight = project(self.project, x), self.contraction()

        def step(z: Tensor) -> Tensor:
            return torch.tanh(sparse_product(pattern, value, z @ weight) + given)

        with torch.no_grad():
            z = self.solve(step, torch.zeros_like(given))
        if not torch.is_grad_enabled() or not (given.requires_grad or weight.requires_grad):
            return z
        z = step(z.detach())  # one step in the graph of gradients: it gives those of the weights and the input
        free = z.detach().requires_grad_()
        mapped = step(free)

        def backward(grad: Tensor | None) -> Tensor | None:
            if grad is None:
                return None
            return self.solve(lambda g: torch.autograd.grad(mapped, free, g, retain_graph=True)[0] + grad, grad)

        z.register_hook(backward)
        return z

    def solve(self, step: Any, z: Tensor) -> Tensor:
        """Iterate until nothing moves by more than the tolerance."""
        for _ in range(self.steps):
            before, z = z, step(z)
            if float((z - before).abs().max() if z.numel() else 0.0) <= self.tolerance:
                break
        return z
