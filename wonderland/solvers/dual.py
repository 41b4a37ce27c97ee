"""The dual view of linear regression: a prediction as a weighted sum of training targets, and its most influential rows."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.ops.algebra.arguments import Numbers, count
from wonderland.solvers.data import full_rank, rows, strength


@dataclass(frozen=True)
class InfluentialRows:
    """For each prediction the training rows with the largest dual weights. Shapes: rows (k, top), weights (k, top)."""

    rows: Tensor
    weights: Tensor


def dual_weights(X: Numbers, x_new: Numbers, *, ridge: float = 0.0, bias: bool = True) -> Tensor:
    r"""The weight of each training target in each prediction; it does not depend on the targets.

    .. math::
        \hat y = x^\top (X^\top X + \lambda I)^{-1} X^\top y = x^\top X^\dagger y = \sum_i d_i y_i

    With a bias the columns are centred and 1/n is added, so that the weights of a prediction sum to 1.

    Shapes: X (n, c), x_new (k, c) -> (k, n). Book: Alice 4.1.3 (dual view).

    >>> dual_weights([[0.0], [1.0], [2.0]], [[2.0]])
    tensor([[-0.1667,  0.3333,  0.8333]], dtype=torch.float64)
    """
    matrix = rows("X", X)
    new = rows("x_new", x_new, matrix.shape[1])
    penalty = strength(ridge)
    if penalty == 0:
        full_rank(matrix, bias)
    mean = matrix.mean(0) if bias else torch.zeros_like(matrix[0])
    # From X = U S V': X (X'X + rI)^-1 = U S / (S^2 + r) V', whatever the shape of X.
    u, s, vt = torch.linalg.svd(matrix - mean, full_matrices=False)
    shrink = torch.where(s > 0, s / (s.square() + penalty), 0.0)
    return (new - mean) @ vt.T @ (shrink.unsqueeze(1) * u.T) + (1 / len(matrix) if bias else 0.0)


def hat_matrix(X: Numbers, *, ridge: float = 0.0, bias: bool = True) -> Tensor:
    r"""The hat matrix: predictions of the training rows as a linear function of their targets.

    .. math:: \hat y = M y, \qquad M = X X^\dagger, \quad M^2 = M = M^\top, \quad \operatorname{tr} M = c

    (c + 1 with a bias; with a ridge it shrinks, and its trace is the effective number of parameters.) Its diagonal is
    the leverage: the weight of a row's target in its own prediction.

    Shapes: X (n, c) -> (n, n). Book: Alice 4.1.3.

    >>> hat_matrix([[1.0], [2.0]], bias=False)
    tensor([[0.2000, 0.4000],
            [0.4000, 0.8000]], dtype=torch.float64)
    """
    return dual_weights(X, X, ridge=ridge, bias=bias)


def influential_rows(
    X: Numbers, x_new: Numbers, *, top: int = 5, ridge: float = 0.0, bias: bool = True
) -> InfluentialRows:
    r"""The training rows with the most influence on each prediction: the largest absolute dual weights, largest first.

    .. math:: \frac{\partial \hat y}{\partial y_i} = d_i

    The weight of a row is the change of the prediction when the row's target changes by one.

    Shapes: X (n, c), x_new (k, c) -> rows (k, top), weights (k, top). Book: Alice 4.1.3.

    >>> influences = influential_rows([[0.0], [1.0], [2.0]], [[2.0]], top=2)
    >>> influences.rows.tolist()
    [[2, 1]]
    """
    weights = dual_weights(X, x_new, ridge=ridge, bias=bias)
    order = weights.abs().argsort(dim=1, descending=True, stable=True)[:, : count("top", top)]
    return InfluentialRows(order, weights.gather(1, order))
