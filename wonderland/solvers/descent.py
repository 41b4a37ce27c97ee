"""Least squares and ridge by gradient descent: the same weights, without solving a system."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, count, positive
from wonderland.solvers.data import rows, strength, targets
from wonderland.solvers.least_squares import LinearFit, gradient


@dataclass(frozen=True)
class Descent:
    """A fit by descent, with the mean squared error before each step (steps + 1 numbers) and whether it settled."""

    fit: LinearFit
    losses: Tensor
    settled: bool


def descend(
    X: Numbers,
    y: Numbers,
    *,
    ridge: float = 0.0,
    bias: bool = True,
    rate: float | None = None,
    steps: int = 15_000,
    tolerance: float = 1e-24,
) -> Descent:
    r"""Steps against the gradient until they are short.

    .. math::
        w_{t+1} = w_t - \eta \left( X^\top (X w_t - y) + \lambda w_t \right), \qquad
        \text{stop at } \|w_{t+1} - w_t\|^2 < \epsilon

    Stable for :math:`\eta < 2 / (\lambda_{\max}(X^\top X) + \lambda)`; the default is half of that bound, found by power
    iteration. Each step is linear in n and in c. The bias is not penalised; it is solved for by taking means off.

    Shapes: X (n, c), y (n,) -> weights (c,). Book: Alice 4.1.3-4.1.4 (C.4.3, E.4.8, F.4.2); D2L 3.4-3.5.

    >>> found = descend([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> found.fit.weights.round(decimals=6), found.settled
    (tensor([2.], dtype=torch.float64), True)
    """
    found = rows("X", X)
    target = targets(found, y)
    strong = strength(ridge)
    middle, offset = (found.mean(0), target.mean()) if bias else (torch.zeros_like(found[0]), target.new_zeros(()))
    centred, target = found - middle, target - offset
    bound = 2 / (_largest(centred) + strong) if bool(centred.any()) or strong > 0 else 1.0
    step = bound / 2 if rate is None else positive("rate", rate)
    weights = torch.zeros_like(middle)
    losses, settled = [_objective(centred, target, weights, strong)], False
    for _ in range(count("steps", steps)):
        move = step * gradient(centred, target, weights, strong)
        weights = weights - move
        losses.append(_objective(centred, target, weights, strong))
        if losses[-1] > 1e6 * (losses[0] + 1e-300) or not bool(weights.isfinite().all()):
            raise WonderlandError(f"`rate` {step:g} is too large and the loss grows: keep it below {bound:.4g}.")
        if float(move @ move) < tolerance:
            settled = True
            break
    return Descent(
        LinearFit(weights, float(offset - middle @ weights)), torch.tensor(losses, dtype=torch.float64), settled
    )


def _objective(X: Tensor, y: Tensor, weights: Tensor, ridge: float) -> float:
    return float(((y - X @ weights).square().sum() + ridge * weights @ weights) / len(X))


def _largest(X: Tensor, rounds: int = 100) -> float:
    """The largest eigenvalue of X'X from products with X alone; a shade above, since the iteration comes from below."""
    vector = torch.randn(X.shape[1], generator=torch.Generator().manual_seed(0), dtype=X.dtype)
    for _ in range(rounds):
        vector = vector / vector.norm()
        vector = X.T @ (X @ vector)
    return 1.01 * float(vector.norm())
