"""Two ways down a convex function: Newton's method, and gradient descent with momentum."""

from collections.abc import Callable

import torch
from torch import Tensor

from wonderland.core import WonderlandError

Function = Callable[[Tensor], Tensor]
SOLVERS = ("newton", "gradient")


def newton(
    loss: Function, slope: Function, bend: Function, reach: Function, start: Tensor, *, penalised: bool = False
) -> tuple[Tensor, int]:
    r"""Newton's method with a line search, for a classifier's loss.

    .. math:: \theta \leftarrow \theta - \alpha H^{-1} \nabla L(\theta), \qquad \alpha = 1, \tfrac12, \tfrac14, \dots

    It has settled when the logits (`reach` of a step) move by less than 1e-8. When classes can be separated, logits gain
    about 1 a step for ever while gradient and curvature vanish: that is found and said, unless a penalty excludes it. Shapes: start (p,) -> (p,).
    Book: Alice 4.2.2; D2L 12.3 (Newton's method).

    >>> square = lambda x: 2 * ((x - 3) ** 2).sum()
    >>> newton(square, lambda x: 4 * (x - 3), lambda x: 4 * torch.eye(1), lambda x: x, torch.zeros(1))
    (tensor([3.]), 2)
    """
    here, value = start, loss(start)
    first = torch.linalg.cholesky_ex(bend(start)).L.diagonal().square()
    for step in range(1, 101):
        factor, failed = torch.linalg.cholesky_ex(bend(here))
        if int(failed) or (not penalised and float((factor.diagonal().square() / first).min()) < 1e-10):
            break
        move = -torch.cholesky_solve(slope(here).unsqueeze(1), factor).squeeze(1)
        if float(reach(move).abs().max()) < 1e-8:
            return here + move, step
        share = 1.0
        while not bool((next_value := loss(here + share * move)) < value + 1e-14 * value.abs()) and share > 1e-9:
            share /= 2
        here, value = here + share * move, next_value
    raise WonderlandError(
        "The classes in `y` can be separated by a plane in `X`, and the weights grow without end: pass ridge > 0."
    )


def gradient_descent(slope: Function, smoothness: float, start: Tensor, steps: int) -> tuple[Tensor, int]:
    r"""Gradient descent with Nesterov's momentum, started afresh whenever it climbs.

    .. math::
        \theta_{t+1} = z_t - \tfrac1L \nabla L(z_t), \qquad
        z_{t+1} = \theta_{t+1} + \beta_t (\theta_{t+1} - \theta_t)

    L bounds the curvature. Shapes: start (p,) -> (p,). Book: Alice 2.3, 4.2.2; D2L 12.6. Paper: O'Donoghue and Candès,
    2015 (restarts).

    >>> theta, steps = gradient_descent(lambda x: 2 * (x - 3), 2.0, torch.zeros(1), steps=10)
    >>> theta
    tensor([3.])
    """
    here, ahead, weight = start, start, 1.0
    scale = float(slope(start).norm())
    for step in range(1, steps + 1):
        g = slope(ahead)
        if float(g.norm()) <= 1e-10 * scale:
            return ahead, step
        there = ahead - g / smoothness
        if float(g @ (there - here)) > 0:
            weight, there = 1.0, here - slope(here) / smoothness
        grown = (1 + (1 + 4 * weight * weight) ** 0.5) / 2
        here, ahead, weight = there, there + (weight - 1) / grown * (there - here), grown
    raise WonderlandError(
        f"The gradient did not vanish in {steps} `steps`: bring the columns of `X` to one scale, pass ridge > 0, or take "
        "solver='newton'."
    )
