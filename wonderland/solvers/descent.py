"""Least squares and ridge regression by gradient descent."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, count, positive
from wonderland.solvers.data import rows, strength, targets
from wonderland.solvers.least_squares import LinearFit, gradient


@dataclass(frozen=True)
class Descent:
    """A fit by gradient descent, the objective before each step and after the last (steps + 1,), and whether it converged."""

    fit: LinearFit
    losses: Tensor
    converged: bool


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
    r"""Gradient descent until the steps are short.

    .. math::
        w_{t+1} = w_t - \eta \left( X^\top (X w_t - y) + \lambda w_t \right), \qquad
        \text{stop at } \|w_{t+1} - w_t\|^2 < \epsilon

    Stable for :math:`\eta < 2 / (\lambda_{\max}(X^\top X) + \lambda)`; the default is half of that bound, found by power
    iteration. Each step is linear in n and in c. The bias is not penalised; it is eliminated by centring.

    Shapes: X (n, c), y (n,) -> weights (c,). Book: Alice 4.1.3-4.1.4 (C.4.3, E.4.8, F.4.2); D2L 3.4-3.5.

    >>> descent = descend([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> descent.fit.weights.round(decimals=6), descent.converged
    (tensor([2.], dtype=torch.float64), True)
    """
    matrix = rows("X", X)
    target = targets(matrix, y)
    penalty = strength(ridge)
    mean, offset = (matrix.mean(0), target.mean()) if bias else (torch.zeros_like(matrix[0]), target.new_zeros(()))
    centred, target = matrix - mean, target - offset
    bound = 2 / (_largest_eigenvalue(centred) + penalty) if bool(centred.any()) or penalty > 0 else 1.0
    step = bound / 2 if rate is None else positive("rate", rate)
    weights = torch.zeros_like(mean)
    losses, converged = [_objective(centred, target, weights, penalty)], False
    for _ in range(count("steps", steps)):
        update = step * gradient(centred, target, weights, penalty)
        weights = weights - update
        losses.append(_objective(centred, target, weights, penalty))
        if losses[-1] > 1e6 * (losses[0] + 1e-300) or not bool(weights.isfinite().all()):
            raise WonderlandError(f"`rate` {step:g} is too large and the loss grows: keep it below {bound:.4g}.")
        if float(update @ update) < tolerance:
            converged = True
            break
    return Descent(
        LinearFit(weights, float(offset - mean @ weights)), torch.tensor(losses, dtype=torch.float64), converged
    )


def _objective(X: Tensor, y: Tensor, weights: Tensor, ridge: float) -> float:
    return float(((y - X @ weights).square().sum() + ridge * weights @ weights) / len(X))


def _largest_eigenvalue(X: Tensor, rounds: int = 100) -> float:
    """The largest eigenvalue of X'X by power iteration, plus 1 %, because the iteration approaches it from below."""
    vector = torch.randn(X.shape[1], generator=torch.Generator().manual_seed(0), dtype=X.dtype)
    for _ in range(rounds):
        vector = vector / vector.norm()
        vector = X.T @ (X @ vector)
    return 1.01 * float(vector.norm())
