"""Neural ODE: depth as time, an adaptive solver, and gradients by a second equation that runs backwards."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.contract.arguments import Checked

# Dormand and Prince, 1980: stages, fifth order, and the difference to fourth order.
_TIMES = (0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1)
_STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
STEPS = 10_000


def odeint(
    f: Callable[[float, Tensor], Tensor], start: Tensor, begin: float, end: float, *, tolerance: float = 1e-6
) -> Tensor:
    r"""The solution at `end` of :math:`\dot z = f(t, z)` that is `start` at `begin`, by Dormand-Prince with steps as large as the tolerance lets them be.

    Shapes: any -> the same.

    >>> round(odeint(lambda t, z: -z, torch.ones(1, dtype=torch.float64), 0.0, 1.0, tolerance=1e-9).item(), 6)
    0.367879
    """
    z, t, sign = start, begin, 1.0 if end >= begin else -1.0
    step = abs(end - begin) / 10
    slope = f(t, z)
    for _ in range(STEPS):
        if (end - t) * sign <= 1e-12:
            return z
        step = min(step, abs(end - t))
        h, slopes, moved = sign * step, [slope], z
        for stage in range(1, 7):
            moved = z + h * sum(w * k for w, k in zip(_STAGES[stage], slopes, strict=False) if w)
            slopes.append(f(t + _TIMES[stage] * h, moved))
        error = h * sum(w * k for w, k in zip(_ERROR, slopes, strict=True) if w)
        assert isinstance(error, Tensor)
        allowed = tolerance * (1 + torch.maximum(z.abs(), moved.abs()))
        size = float((error / allowed).detach().square().mean().sqrt())
        if not size < float("inf"):
            raise WonderlandError(f"The solution stopped being finite at time {t:.4g}.")
        if size <= 1:
            t, z, slope = t + h, moved, slopes[-1]  # the last stage is the first of the next step
        step *= min(5.0, max(0.2, 0.9 * max(size, 1e-10) ** -0.2))
    raise WonderlandError(f"The equation is too stiff: {STEPS:,} steps ended at time {t:.4g} of {end:.4g}.")


class _Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, f: Any, begin: float, end: float, tolerance: float, start: Tensor, *parameters: Tensor
    ) -> Tensor:  # pyright: ignore
        with torch.no_grad():
            out = odeint(f, start, begin, end, tolerance=tolerance)
        ctx.f, ctx.begin, ctx.end, ctx.tolerance = f, begin, end, tolerance
        ctx.save_for_backward(out, *parameters)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore
        out, *parameters = ctx.saved_tensors
        size = out.numel()

        def backwards(t: float, state: Tensor) -> Tensor:
            z, a = state[:size].view_as(out), state[size : 2 * size].view_as(out)
            with torch.enable_grad():
                z = z.detach().requires_grad_()
                value = ctx.f(t, z)
                pulled = torch.autograd.grad(value, (z, *parameters), -a, allow_unused=True)
            rest = [torch.zeros_like(p) if g is None else g for g, p in zip(pulled[1:], parameters, strict=True)]
            return torch.cat([value.detach().reshape(-1), *((g.reshape(-1)) for g in (pulled[0], *rest))])

        empty = torch.zeros(sum(p.numel() for p in parameters), dtype=out.dtype, device=out.device)
        with torch.no_grad():
            state = torch.cat([out.reshape(-1), gradient.reshape(-1), empty])
            state = odeint(backwards, state, ctx.end, ctx.begin, tolerance=ctx.tolerance)
        grads, place = [], 2 * size
        for p in parameters:
            grads.append(state[place : place + p.numel()].view_as(p))
            place += p.numel()
        return None, None, None, None, state[size : 2 * size].view_as(out), *grads


@part
class NeuralODE(Checked, nn.Module):
    r"""A residual network without layers: the state flows along a learned field.

    .. math:: \dot z = f_\theta(t, z),\ z(0) = x,\ y = z(1), \qquad \dot a = -a^\top \frac{\partial f}{\partial z}, \quad
        \frac{\partial L}{\partial \theta} = \int_0^1 a^\top \frac{\partial f}{\partial \theta} \, dt

    The adjoint :math:`a` is solved backwards, so memory does not grow with the number of steps. Without `body`, f has one
    hidden layer of tanh over (z, t). Shapes: x (b, dim) -> (b, dim). Book: Alice 9.4. Paper: Chen et al., 2018.

    >>> NeuralODE(dim=2)(torch.randn(3, 2)).shape
    torch.Size([3, 2])
    """

    takes_specs = True

    def __init__(self, dim: int, *, hidden: int = 32, body: Spec | None = None, tolerance: float = 1e-5):
        super().__init__()
        if dim < 1 or not tolerance > 0:
            raise WonderlandError("A neural ODE needs at least one feature and a tolerance above 0.")
        self.body = _Field(dim, hidden) if body is None else body.build()
        self.tolerance = tolerance

    def forward(self, x: Tensor) -> Tensor:
        return _Adjoint.apply(self.body, 0.0, 1.0, self.tolerance, x, *self.body.parameters())  # pyright: ignore


class _Field(nn.Module):
    """One hidden layer of tanh over (z, t)."""

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.inward, self.outward = nn.Linear(dim + 1, hidden), nn.Linear(hidden, dim)

    def forward(self, t: float, z: Tensor) -> Tensor:
        return self.outward(torch.tanh(self.inward(torch.cat([z, torch.full_like(z[..., :1], t)], -1))))
