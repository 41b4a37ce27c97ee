"""Kernels of the distance: values in place, and gradients by matrix products instead of differences of all pairs."""

from typing import Any

import torch
from torch import Tensor

EXACT = 16  # up to so many features, distances are summed feature by feature, without cancellation


def squared_distances(u: Tensor, v: Tensor, same: bool = False) -> Tensor:
    r""":math:`\|u_i - v_j\|^2`. Shapes: (n, d), (m, d) -> (n, m).

    >>> squared_distances(torch.tensor([[0.0], [3.0]]), torch.tensor([[1.0]]))
    tensor([[1.],
            [4.]])
    """
    if u.shape[1] <= EXACT:
        if u.shape[1] == 1:
            return (u - v.T).square_()
        return torch.cdist(u, v, compute_mode="donot_use_mm_for_euclid_dist").square_()
    middle = v.mean(0)
    u, v = u - middle, v - middle
    apart = torch.addmm(v.square().sum(1)[None, :] + u.square().sum(1)[:, None], u, v.T, alpha=-2).clamp_(min=0)
    if same:
        apart.fill_diagonal_(0)
    return apart


def _rbf(d: Tensor, shape: float | None) -> tuple[Tensor, Any]:
    value = d.mul_(-0.5).exp_()
    return value, (value,)


def _rbf_slope(saved: Any, shape: float | None) -> Tensor:
    return saved[0] * -0.5


def _matern(d: Tensor, nu: float | None) -> tuple[Tensor, Any]:
    assert nu is not None
    if nu == 0.5:
        root = d.sqrt_()
        return torch.exp(-root), (root,)
    r = d.mul_(2 * nu).sqrt_()
    decay = torch.exp(-r)
    if nu == 1.5:
        return decay * (r + 1), (r, decay)
    return (r.square() / 3).add_(r).add_(1).mul_(decay), (r, decay)


def _matern_slope(saved: Any, nu: float | None) -> Tensor:
    """The derivative by the squared distance."""
    if nu == 0.5:
        (root,) = saved
        # At distance 0 the slope is infinite, and the distance itself has none: it counts as 0.
        return torch.where(root > 0, -torch.exp(-root) / (2 * root.clamp(min=1e-300)), 0.0)
    r, decay = saved
    if nu == 1.5:
        return decay * -1.5
    return (r + 1).mul_(decay).mul_(-5 / 6)


def _quadratic(d: Tensor, alpha: float | None) -> tuple[Tensor, Any]:
    assert alpha is not None
    base = d.div_(2 * alpha).add_(1)
    return base.pow(-alpha), (base,)


def _quadratic_slope(saved: Any, alpha: float | None) -> Tensor:
    assert alpha is not None
    return saved[0].pow(-alpha - 1).mul_(-0.5)


SHAPES = {"rbf": (_rbf, _rbf_slope), "matern": (_matern, _matern_slope), "quadratic": (_quadratic, _quadratic_slope)}


class Stationary(torch.autograd.Function):
    r"""A function of the squared distance of rows.

    .. math:: K_{ij} = k(\|u_i - v_j\|^2), \qquad W = G \odot k'(D), \qquad
              \frac{\partial L}{\partial U} = 2 (\mathrm{diag}(W 1)\, U - W V)

    The gradient takes one matrix product, however many features there are. Shapes: u (n, d), v (m, d) -> (n, m).
    """

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, v: Tensor, name: str, shape: Tensor | None, nu: float | None, same: bool
    ) -> Tensor:
        ctx.name, ctx.nu = name, float(shape) if shape is not None else nu
        ctx.shaped = shape is not None
        value, saved = SHAPES[name][0](squared_distances(u, v, same), ctx.nu)
        ctx.save_for_backward(u, v, value, *saved)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = gradients
        u, v, value, *saved = ctx.saved_tensors
        du = dv = ds = None
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            w = SHAPES[ctx.name][1](saved, ctx.nu).mul_(g)
            if ctx.needs_input_grad[0]:
                du = 2 * (w.sum(1, keepdim=True) * u - w @ v)
            if ctx.needs_input_grad[1]:
                dv = 2 * (w.sum(0).unsqueeze(1) * v - w.T @ u)
        if ctx.shaped and ctx.needs_input_grad[3]:
            # d/da of b^-a with b = 1 + D / 2a.
            (base,) = saved
            ds = (g * value * (-base.log() + (base - 1) / base)).sum()
        return du, dv, None, ds, None, None
