"""Least squares regression by QR factorisation."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.ops.algebra.arguments import Numbers
from wonderland.solvers.data import full_rank, rows, targets


@dataclass(frozen=True)
class LinearFit:
    """A fitted linear model, f(x) = w·x + b. Shapes: weights (c,), in float64; bias a number, 0 without a bias."""

    weights: Tensor
    bias: float

    def predict(self, X: Numbers) -> Tensor:
        """Predictions Xw + b. Shapes: (n, c) -> (n,)."""
        return rows("X", X, len(self.weights)) @ self.weights + self.bias


def least_squares(X: Numbers, y: Numbers, *, bias: bool = True) -> LinearFit:
    r"""The weights with the smallest mean squared error.

    .. math::
        w^*, b^* = \arg\min_{w, b} \frac1n \|y - Xw - \mathbf{1} b\|^2, \qquad w^* = (X^\top X)^{-1} X^\top y
        \text{ without bias}

    Solved by a QR factorisation of the centred columns, scaled to norm 1: the normal equations
    :math:`X^\top X w = X^\top y` would square the condition number. O(n c^2). Linearly dependent columns are refused by name.

    Shapes: X (n, c), y (n,) -> weights (c,). Book: Alice 4.1.1-4.1.4 (E.4.4-E.4.7, C.4.2); D2L 3.1.

    >>> fit = least_squares([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> fit.weights.round(decimals=9), round(fit.bias, 9)
    (tensor([2.], dtype=torch.float64), 1.0)
    """
    matrix = rows("X", X)
    target = targets(matrix, y)
    full_rank(matrix, bias)
    return centred_solution(matrix, target, 0.0, bias)


def centred_solution(X: Tensor, y: Tensor, ridge: float, bias: bool) -> LinearFit:
    """The minimum of |y - Xw - b|^2 + ridge |w|^2; the bias is not penalised, so it is eliminated by centring."""
    mean, offset = (X.mean(0), y.mean()) if bias else (torch.zeros_like(X[0]), torch.zeros_like(y[0]))
    centred, target = X - mean, y - offset
    if ridge > 0:
        # The penalty as extra rows sqrt(ridge) I with target 0, so that the condition number of X is not squared.
        centred = torch.cat([centred, ridge**0.5 * torch.eye(X.shape[1], dtype=X.dtype)])
        target = torch.cat([target, target.new_zeros(X.shape[1])])
    size = centred.norm(dim=0).clamp_min(torch.finfo(X.dtype).tiny)
    q, r = torch.linalg.qr(centred / size)
    weights = torch.linalg.solve_triangular(r, (q.T @ target).unsqueeze(1), upper=True).squeeze(1) / size
    return LinearFit(weights, float(offset - mean @ weights))


def gradient(X: Tensor, y: Tensor, weights: Tensor, ridge: float = 0.0) -> Tensor:
    r"""The gradient of the squared error with its penalty: residuals times inputs, linear in n and in c.

    .. math:: \nabla_w \left( \tfrac12 \|y - Xw\|^2 + \tfrac{\lambda}{2} \|w\|^2 \right) = X^\top (Xw - y) + \lambda w

    The order of the products matters: no (c, c) matrix is formed. Shapes: X (n, c), y (n,), weights (c,) -> (c,).
    Book: Alice 4.1.3-4.1.4.

    >>> gradient(torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 2.0]), torch.tensor([0.0]))
    tensor([-5.])
    """
    return X.T @ (X @ weights - y) + ridge * weights
