"""The dual view: a prediction as a weighted sum of training targets, and so the rows that drive it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.ops.algebra.arguments import Numbers, count
from wonderland.solvers.data import full_rank, rows, strength


@dataclass(frozen=True)
class Drivers:
    """For each prediction the training rows with the largest dual weights. Shapes: rows (k, top), weights (k, top)."""

    rows: Tensor
    weights: Tensor


def dual_weights(X: Numbers, x_new: Numbers, *, ridge: float = 0.0, bias: bool = True) -> Tensor:
    r"""How much each training target counts in each prediction, before any target is seen.

    .. math::
        \hat y = x^\top (X^\top X + \lambda I)^{-1} X^\top y = x^\top X^\dagger y = \sum_i d_i y_i

    With a bias the columns are centred and 1/n is added, so that the weights of a prediction sum to 1.

    Shapes: X (n, c), x_new (k, c) -> (k, n). Book: Alice 4.1.3 (dual view).

    >>> dual_weights([[0.0], [1.0], [2.0]], [[2.0]])
    tensor([[-0.1667,  0.3333,  0.8333]], dtype=torch.float64)
    """
    found = rows("X", X)
    new = rows("x_new", x_new, found.shape[1])
    strong = strength(ridge)
    if strong == 0:
        full_rank(found, bias)
    middle = found.mean(0) if bias else torch.zeros_like(found[0])
    # From X = U S V': X (X'X + rI)^-1 = U S / (S^2 + r) V', whatever the shape of X.
    u, s, vt = torch.linalg.svd(found - middle, full_matrices=False)
    shrink = torch.where(s > 0, s / (s.square() + strong), 0.0)
    return (new - middle) @ vt.T @ (shrink.unsqueeze(1) * u.T) + (1 / len(found) if bias else 0.0)


def hat_matrix(X: Numbers, *, ridge: float = 0.0, bias: bool = True) -> Tensor:
    r"""The matrix that puts the hat on y: predictions of the training rows from their own targets.

    .. math:: \hat y = M y, \qquad M = X X^\dagger, \quad M^2 = M = M^\top, \quad \operatorname{tr} M = c

    (c + 1 with a bias; with a ridge it shrinks, and its trace is the effective number of parameters.) Its diagonal is
    the leverage: how strongly a row pulls its own prediction.

    Shapes: X (n, c) -> (n, n). Book: Alice 4.1.3.

    >>> hat_matrix([[1.0], [2.0]], bias=False)
    tensor([[0.2000, 0.4000],
            [0.4000, 0.8000]], dtype=torch.float64)
    """
    return dual_weights(X, X, ridge=ridge, bias=bias)


def drivers(X: Numbers, x_new: Numbers, *, top: int = 5, ridge: float = 0.0, bias: bool = True) -> Drivers:
    r"""The training rows that drive each prediction: those with the largest absolute dual weights, largest first.

    .. math:: \frac{\partial \hat y}{\partial y_i} = d_i

    A driver's weight is what the prediction moves by when that row's target moves by one.

    Shapes: X (n, c), x_new (k, c) -> rows (k, top), weights (k, top). Book: Alice 4.1.3.

    >>> found = drivers([[0.0], [1.0], [2.0]], [[2.0]], top=2)
    >>> found.rows.tolist()
    [[2, 1]]
    """
    weights = dual_weights(X, x_new, ridge=ridge, bias=bias)
    order = weights.abs().argsort(dim=1, descending=True, stable=True)[:, : count("top", top)]
    return Drivers(order, weights.gather(1, order))
