"""Minimisation under constraints: penalties, and multipliers that make them exact."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, choice, count, numbers, positive

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Solution:
    """A constrained minimum with its certificate: multipliers, and how far the KKT conditions are from holding.

    `violation` is the largest breach of a constraint, `stationarity` the length of the gradient of the Lagrangian, and
    `slackness` the largest product of a multiplier with its constraint. All three are 0 at an exact solution.
    """

    point: Tensor
    value: float
    equal_multipliers: Tensor
    below_multipliers: Tensor
    violation: float
    stationarity: float
    slackness: float
    rounds: int


def lagrangian(f: Function, x: Tensor, equal: Tensor, below: Tensor, nu: Tensor, alpha: Tensor) -> Tensor:
    r"""The objective plus each constraint at its price.

    .. math:: L(x, \nu, \alpha) = f(x) + \sum_j \nu_j h_j(x) + \sum_i \alpha_i c_i(x), \qquad \alpha_i \ge 0

    Shapes: x (n,), equal (p,) = h(x), below (q,) = c(x), nu (p,), alpha (q,) -> one number. Book: D2L 12.2 (Lagrangian).

    >>> x = torch.tensor([1.0, 2.0])
    >>> lagrangian(lambda x: x.sum(), x, torch.zeros(0), x - 3, torch.zeros(0), torch.ones(2))
    tensor(0.)
    """
    return f(x) + nu @ equal + alpha @ below


def minimise(
    f: Function,
    start: Numbers,
    *,
    equal: Function | None = None,
    below: Function | None = None,
    method: str = "augmented",
    tolerance: float = 1e-7,
    rounds: int = 60,
) -> Solution:
    r"""The minimum of f where h(x) = 0 and c(x) <= 0, by a sequence of problems without constraints.

    .. math::
        \min_x f(x) + \nu^\top h(x) + \frac{\rho}{2} \|h(x)\|^2
        + \frac{1}{2\rho} \sum_i \left( \max(0, \alpha_i + \rho c_i(x))^2 - \alpha_i^2 \right)

    "penalty" keeps :math:`\nu = \alpha = 0` and multiplies :math:`\rho` by 10 each round: the breach falls like
    :math:`1/\rho`, and never to zero. "augmented" also moves the prices, :math:`\nu \leftarrow \nu + \rho h` and
    :math:`\alpha \leftarrow \max(0, \alpha + \rho c)`, and is exact at a moderate :math:`\rho`. KKT holds at the end:
    :math:`\nabla f + \nu^\top \nabla h + \alpha^\top \nabla c = 0` and :math:`\alpha_i c_i = 0`. A local method: global
    only for convex f and c, and linear h.

    Shapes: start (n,); f (n,) -> one number; equal (n,) -> (p,); below (n,) -> (q,). Book: D2L 12.2 (constraints,
    penalties). Method: Hestenes, 1969; Powell, 1969.

    >>> found = minimise(lambda x: (x**2).sum(), [0.0, 0.0], equal=lambda x: x.sum().reshape(1) - 1)
    >>> found.point.round(decimals=6), found.equal_multipliers.round(decimals=6)
    (tensor([0.5000, 0.5000], dtype=torch.float64), tensor([-1.], dtype=torch.float64))
    """
    x = numbers("start", start, 1).detach().clone()
    choice("method", method, ("augmented", "penalty"))
    positive("tolerance", tolerance)
    h, c = _constraint("equal", equal, x), _constraint("below", below, x)
    nu, alpha, rho, before = torch.zeros_like(h(x)), torch.zeros_like(c(x)), 10.0, float("inf")
    breach = before
    for done in range(1, count("rounds", rounds) + 1):
        x = _descend(lambda z: _augmented(f, z, h(z), c(z), nu, alpha, rho), x)  # noqa: B023
        prices = nu + rho * h(x), (alpha + rho * c(x)).clamp_min(0.0)
        breach = _breach(h(x), c(x))
        if method == "augmented":
            nu, alpha = prices
        if breach <= tolerance and float((prices[1] * c(x)).abs().sum()) <= max(tolerance, 10 * tolerance * rho):
            return _certified(f, x, h, c, prices, breach, done)
        if (method == "penalty" or breach > 0.25 * before) and rho < 1e10:
            rho *= 10.0
        before = breach
    raise WonderlandError(
        f"No point that keeps the constraints was found: the largest breach after {rounds} rounds is {breach:.3g}. "
        "They may contradict each other; otherwise try another `start` or a larger `tolerance`."
    )


def _constraint(name: str, function: Function | None, x: Tensor) -> Function:
    if function is None:
        return lambda z: z.new_zeros(0)
    shape = tuple(function(x).shape)
    if len(shape) != 1:
        raise WonderlandError(f"`{name}` gave shape {shape}: it has to give a vector, one entry a constraint.")
    return function


def _augmented(f: Function, x: Tensor, h: Tensor, c: Tensor, nu: Tensor, alpha: Tensor, rho: float) -> Tensor:
    raised = (alpha + rho * c).clamp_min(0.0)
    return f(x) + nu @ h + rho / 2 * (h @ h) + (raised @ raised - alpha @ alpha) / (2 * rho)


def _breach(h: Tensor, c: Tensor) -> float:
    return max([0.0, *h.abs().tolist(), *c.tolist()])


def _descend(objective: Function, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    solver = torch.optim.LBFGS(
        [x], max_iter=500, history_size=20, tolerance_grad=1e-11, tolerance_change=1e-15, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        solver.zero_grad()
        value = objective(x)
        value.backward()
        return value

    for _ in range(3):  # a fresh memory of curvature gets past a stalled line search
        solver.state.clear()
        solver.step(closure)
    if not bool(x.isfinite().all()) or float(x.detach().abs().max()) > 1e12:
        raise WonderlandError("The search ran off to infinity: `f` has no minimum where the constraints hold.")
    return x.detach()


def _certified(
    f: Function, x: Tensor, h: Function, c: Function, prices: tuple[Tensor, Tensor], breach: float, rounds: int
) -> Solution:
    point = x.clone().requires_grad_()
    slope = torch.autograd.grad(lagrangian(f, point, h(point), c(point), *prices), point)[0]
    slack = float((prices[1] * c(x)).abs().max()) if prices[1].numel() else 0.0
    return Solution(x, float(f(x)), *prices, breach, float(slope.norm()), slack, rounds)
