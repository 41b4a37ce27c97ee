"""Minimisers of smooth convex functions: Newton's method, and accelerated gradient descent."""

from collections.abc import Callable

import torch
from torch import Tensor

from wonderland.core import WonderlandError

Function = Callable[[Tensor], Tensor]
SOLVERS = ("newton", "gradient")


def newton(
    loss: Function, gradient: Function, hessian: Function, logits: Function, start: Tensor, *, penalised: bool = False
) -> tuple[Tensor, int]:
    r"""Newton's method with a backtracking line search, for the loss of a linear classifier.

    .. math:: \theta \leftarrow \theta - \alpha H^{-1} \nabla L(\theta), \qquad \alpha = 1, \tfrac12, \tfrac14, \dots

    It has converged when a step changes the logits (`logits(step)`, linear in the parameters) by less than 1e-8. For separable
    classes the logits grow by about 1 in each step while gradient and curvature vanish; without a penalty that is an error.

    Shapes: start (p,) -> (p,), and the number of steps.
    Book: Alice 4.2.2; D2L 12.3 (Newton's method).

    >>> square = lambda x: 2 * ((x - 3) ** 2).sum()
    >>> newton(square, lambda x: 4 * (x - 3), lambda x: 4 * torch.eye(1), lambda x: x, torch.zeros(1))
    (tensor([3.]), 2)
    """
    theta, value = start, loss(start)
    first = torch.linalg.cholesky_ex(hessian(start)).L.diagonal().square()
    for step in range(1, 101):
        factor, failed = torch.linalg.cholesky_ex(hessian(theta))
        if int(failed) or (not penalised and float((factor.diagonal().square() / first).min()) < 1e-10):
            break
        direction = -torch.cholesky_solve(gradient(theta).unsqueeze(1), factor).squeeze(1)
        if float(logits(direction).abs().max()) < 1e-8:
            return theta + direction, step
        size = 1.0
        while not bool((next_value := loss(theta + size * direction)) < value + 1e-14 * value.abs()) and size > 1e-9:
            size /= 2
        theta, value = theta + size * direction, next_value
    raise WonderlandError("The classes in `y` are linearly separable in `X`, so the weights diverge: pass ridge > 0.")


def gradient_descent(gradient: Function, smoothness: float, start: Tensor, steps: int) -> tuple[Tensor, int]:
    r"""Gradient descent with Nesterov's momentum, restarted whenever the objective would increase.

    .. math::
        \theta_{t+1} = z_t - \tfrac1L \nabla L(z_t), \qquad
        z_{t+1} = \theta_{t+1} + \beta_t (\theta_{t+1} - \theta_t)

    L bounds the curvature. Shapes: start (p,) -> (p,). Book: Alice 2.3, 4.2.2; D2L 12.6. Paper: O'Donoghue and Candès,
    2015 (restarts).

    >>> theta, steps = gradient_descent(lambda x: 2 * (x - 3), 2.0, torch.zeros(1), steps=10)
    >>> theta
    tensor([3.])
    """
    theta, ahead, weight = start, start, 1.0
    scale = float(gradient(start).norm())
    for step in range(1, steps + 1):
        g = gradient(ahead)
        if float(g.norm()) <= 1e-10 * scale:
            return ahead, step
        new = ahead - g / smoothness
        if float(g @ (new - theta)) > 0:
            weight, new = 1.0, theta - gradient(theta) / smoothness
        next_weight = (1 + (1 + 4 * weight * weight) ** 0.5) / 2
        theta, ahead, weight = new, new + (weight - 1) / next_weight * (new - theta), next_weight
    raise WonderlandError(
        f"Gradient descent did not converge in {steps} `steps`: scale the columns of `X`, pass ridge > 0, or use "
        "solver='newton'."
    )
