"""Deep equilibrium: a layer whose output is a fixed point, with gradients by the implicit function theorem."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.contract.arguments import Checked


def fixed_point(
    f: Callable[[Tensor], Tensor], start: Tensor, *, steps: int, tolerance: float, memory: int = 5
) -> tuple[Tensor, float]:
    r"""Anderson acceleration: the next point is the best mixture of the last few.

    .. math:: \min_{\alpha: \sum \alpha = 1} \Big\lVert \sum_k \alpha_k (f(z_k) - z_k) \Big\rVert, \qquad z \leftarrow \sum_k \alpha_k f(z_k)

    Gives the point and the relative size of what is left. Shapes: (b, ...) -> (b, ...); rows are mixed alone.
    """
    batch = len(start)
    points, values, z, rest = [], [], start, float("inf")
    for _ in range(steps):
        value = f(z)
        rest = float((value - z).norm() / value.norm().clamp_min(1e-12))
        if rest < tolerance:
            return value, rest
        points, values = [*points, z][-memory:], [*values, value][-memory:]
        gaps = torch.stack([(v - p).reshape(batch, -1) for v, p in zip(values, points, strict=True)], 1)
        gram = gaps @ gaps.mT
        scale = gram.diagonal(dim1=-2, dim2=-1).amax(-1)[:, None, None].clamp_min(1e-30)
        gram = gram / scale + 1e-8 * torch.eye(len(values), dtype=gram.dtype, device=gram.device)
        alpha = torch.linalg.solve(gram, torch.ones(batch, len(values), 1, dtype=gram.dtype, device=gram.device))
        alpha = alpha / alpha.sum(1, keepdim=True)
        z = (torch.stack([value.reshape(batch, -1) for value in values], 1) * alpha).sum(1).view_as(start)
    return z, rest


@part
class Equilibrium(Checked, nn.Module):
    r"""The fixed point of a layer, as if it were applied without end.

    .. math:: z^* = f(z^*, x), \qquad \frac{\partial L}{\partial \theta} = \frac{\partial L}{\partial z^*}
        \Big(I - \frac{\partial f}{\partial z^*}\Big)^{-1} \frac{\partial f}{\partial \theta}

    The backward pass solves :math:`u = u \, \partial f / \partial z + \partial L / \partial z` by the same iteration, so memory is
    that of one application, however many steps the solver takes. Without `body`, :math:`f = \tanh(W z + U x + b)`.

    Shapes: x (b, dim) -> (b, dim). Book: Alice 13.2. Paper: Bai et al., 2019.

    >>> Equilibrium(dim=4)(torch.randn(2, 4)).shape
    torch.Size([2, 4])
    """

    takes_specs = True

    def __init__(self, dim: int, *, body: Spec | None = None, steps: int = 50, tolerance: float = 1e-5):
        super().__init__()
        if dim < 1 or steps < 1:
            raise WonderlandError("An equilibrium needs at least one feature and one step.")
        self.body = _Cell(dim) if body is None else body.build()
        self.steps, self.tolerance, self.rest = steps, tolerance, 0.0

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            z, self.rest = fixed_point(
                lambda z: self.body(z, x), torch.zeros_like(x), steps=self.steps, tolerance=self.tolerance
            )
        if not torch.is_grad_enabled():
            return z
        z = self.body(z, x)  # one application that gradients pass
        if not z.requires_grad:
            return z
        point = z.detach().requires_grad_()
        with torch.enable_grad():
            again = self.body(point, x.detach())

        def solve(gradient: Tensor) -> Tensor:
            def pulled(u: Tensor) -> Tensor:
                return torch.autograd.grad(again, point, u, retain_graph=True)[0] + gradient

            return fixed_point(pulled, gradient, steps=self.steps, tolerance=self.tolerance)[0]

        z.register_hook(solve)
        return z


class _Cell(nn.Module):
    """tanh(W z + U x + b), begun as a contraction."""

    def __init__(self, dim: int):
        super().__init__()
        self.state, self.input = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim)
        nn.init.orthogonal_(self.state.weight, 0.5)

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.state(z) + self.input(x))
