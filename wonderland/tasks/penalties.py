"""Regularisation penalties on weights: L2, L1, group sparsity."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.optim import groups


def l2(weights: Any, strength: float | int) -> Tensor:
    r"""The L2 penalty: the sum of squares.

    .. math:: \lambda \sum_i w_i^2, \qquad \text{gradient } 2 \lambda w

    It is the negative log-prior of a normal distribution with variance :math:`1 / 2 \lambda`. For plain SGD with step :math:`\eta` it is
    weight decay by :math:`2 \eta \lambda`; for Adam it is not.

    `weights` is a tensor, several of them, or a model: then all weights with weight decay (no biases, no norms).
    Book: Alice 9.2.1; D2L 3.7.

    >>> l2(torch.tensor([1.0, -2.0]), 0.5)
    tensor(2.5000)
    """
    return _total(weights, strength, "l2", lambda w: w.square().sum())


def l1(weights: Any, strength: float | int) -> Tensor:
    r"""The L1 penalty: the sum of absolute values, which makes many weights 0.

    .. math:: \lambda \sum_i |w_i|

    It is the negative log-prior of a Laplace distribution. `weights` as for `l2`. Book: Alice 9.2.1.

    >>> l1(torch.tensor([1.0, -2.0]), 0.5)
    tensor(1.5000)
    """
    return _total(weights, strength, "l1", lambda w: w.abs().sum())


def group_sparsity(weights: Any, strength: float | int, *, axis: int = 0) -> Tensor:
    r"""Group lasso: the sum of group norms, which makes whole units 0.

    .. math:: \lambda \sum_g \sqrt{|g|}\, \lVert w_g \rVert_2

    A group has one index along `axis`: for a linear layer, 0 groups the incoming weights of a unit, 1 the outgoing ones.
    A group at 0 stays there. `weights` as for `l2`; a tensor with fewer than two axes is one group.
    Book: Alice 9.2.1. Paper: Yuan and Lin, 2006.

    >>> group_sparsity(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), 1)
    tensor(7.0711)
    """

    def norms(w: Tensor) -> Tensor:
        rows = w.movedim(axis, 0).flatten(1) if w.dim() > 1 else w.reshape(1, -1)
        return math.sqrt(rows.shape[1]) * torch.linalg.vector_norm(rows, dim=1).sum()

    return _total(weights, strength, "group_sparsity", norms)


def product_l1(a: Any, b: Any, strength: float | int) -> Tensor:
    r"""L1 of a product of parameters as a smooth penalty, for plain gradient descent.

    .. math:: \frac{\lambda}{2} \bigl( \lVert a \rVert^2 + \lVert b \rVert^2 \bigr) \ge \lambda \lVert a \odot b \rVert_1

    with equality where :math:`|a| = |b|`, so the minimum over all a and b with the same product is its L1. (The book omits
    the factor 1/2.) Shapes: a, b of one shape. Book: Alice 9.2.1. Paper: Ziyin and Wang, 2023.

    >>> product_l1(torch.tensor([2.0]), torch.tensor([-2.0]), 1)
    tensor(4.)
    """
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Tensor):
            raise WonderlandError(f"product_l1 takes a tensor as its {name}, not a {type(value).__name__}.")
    if a.shape != b.shape:
        raise WonderlandError(
            f"product_l1 got an a of shape {tuple(a.shape)} and a b of shape {tuple(b.shape)}: give both the same shape."
        )
    return _total([a, b], strength, "product_l1", lambda w: w.square().sum() / 2)


def _total(weights: Any, strength: Any, name: str, cost: Any) -> Tensor:
    tensors = _tensors(weights, name)
    if isinstance(strength, bool) or not isinstance(strength, int | float) or not 0 <= strength < math.inf:
        raise WonderlandError(f"{name} takes a strength of at least 0, not {strength!r}.")
    if strength == 0:  # a constant 0 without a graph
        return tensors[0].new_zeros(())
    return strength * torch.stack([cost(w) for w in tensors]).sum()


def _tensors(weights: Any, name: str) -> list[Tensor]:
    if isinstance(weights, nn.Module):
        weights = groups(weights, weight_decay=1.0)
        weights = [w for group in weights if group["weight_decay"] for w in group["params"]]
    elif isinstance(weights, Tensor):
        weights = [weights]
    tensors = list(weights) if isinstance(weights, Iterable) else []
    if not tensors or not all(isinstance(w, Tensor) and w.is_floating_point() for w in tensors):
        raise WonderlandError(f"{name} takes a float tensor, several of them, or a model with such weights.")
    return tensors
