"""Ridge regression whose penalty is chosen by leaving each row out, in closed form; for many more features than rows too."""

from dataclasses import dataclass

import torch
from torch import Tensor

PENALTIES = tuple(10.0**k for k in range(-6, 4))  # as shares of the mean squared norm of a row
MOST_TO_CHOOSE = 1500  # rows on which the penalty is chosen


@dataclass(frozen=True)
class RidgeFit:
    """Weights (d, k) and intercept (k,), the penalty, and predictions of rows that were left out (n', k), which `rows` (n',) names."""

    weight: Tensor
    intercept: Tensor
    penalty: float
    left_out: Tensor
    rows: Tensor


def ridge_loo(x: Tensor, y: Tensor, penalties: tuple[float, ...] = PENALTIES) -> RidgeFit:
    r"""Linear regression of y (n, k) on x (n, d) with a penalty on the weights, and an intercept without one.

    .. math:: a_\lambda = (K + \lambda I)^{-1} (y - \bar y), \qquad w = X^\top a_\lambda, \qquad
        y_i - \hat y_{-i} = a_{\lambda, i} / (K + \lambda I)^{-1}_{ii}

    K holds the inner products of centred rows, plus a constant that stands for the intercept. The penalty is the one with the smallest
    squared error of rows left out, measured on at most 1,500 of them. Shapes: x (n, d), y (n, k).

    >>> x = torch.eye(4, dtype=torch.float64)[:, :3]
    >>> fit = ridge_loo(x, x.sum(1, keepdim=True))
    >>> fit.weight.shape, fit.left_out.shape
    (torch.Size([3, 1]), torch.Size([4, 1]))
    """
    x, y = x.double(), y.double()
    mean, middle = x.mean(0), y.mean(0)
    centred, target = x - mean, y - middle
    size = float(centred.square().sum(1).mean().clamp_min(1e-12))
    count = len(x)
    rows = torch.linspace(0, count - 1, min(count, MOST_TO_CHOOSE)).long()
    share = penalties[0]
    best, left_out = torch.inf, target
    # Centring makes the rows dependent; the constant in the kernel lets the intercept be left out with its row.
    kernel = centred[rows] @ centred[rows].T + size
    values, vectors = torch.linalg.eigh(kernel)
    turned = vectors.T @ target[rows]
    for candidate in penalties:
        inverse = 1 / (values.clamp_min(0) + candidate * size)
        dual = vectors @ (inverse[:, None] * turned)
        diagonal = (vectors.square() * inverse).sum(1, keepdim=True)
        residual = dual / diagonal
        error = float(residual.square().mean())
        if error < best * (1 - 1e-9):
            best, share, left_out = error, candidate, target[rows] - residual
    weight = _solve(centred, target, share * size * count / len(rows))
    return RidgeFit(weight, middle - mean @ weight, share, left_out + middle, rows)


def _solve(x: Tensor, y: Tensor, penalty: float) -> Tensor:
    """Weights by the smaller of the two systems: rows by rows, or features by features."""
    n, d = x.shape
    square = x @ x.T if n <= d else x.T @ x
    square.diagonal().add_(penalty)
    factor = torch.linalg.cholesky(square)
    if n <= d:
        return x.T @ torch.cholesky_solve(y, factor)
    return torch.cholesky_solve(x.T @ y, factor)
