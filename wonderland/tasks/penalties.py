"""Penalties: what weights cost, added to a loss so that it prefers small ones, few of them, or few units."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.optim import groups


def l2(weights: Any, strength: float | int) -> Tensor:
    r"""The sum of squares: every weight is drawn to 0 in proportion to itself.

    .. math:: \lambda \sum_i w_i^2, \qquad \text{gradient } 2 \lambda w

    It is the prior of a normal distribution of variance :math:`1 / 2 \lambda`. For plain SGD with step :math:`\eta` it is
    weight decay by :math:`2 \eta \lambda`; for Adam it is not.

    `weights` is a tensor, several of them, or a model: then all that weight decay would touch (no biases, no norms).
    Book: Alice 9.2.1; D2L 3.7.

    >>> l2(torch.tensor([1.0, -2.0]), 0.5)
    tensor(2.5000)
    """
    return _total(weights, strength, "l2", lambda w: w.square().sum())


def l1(weights: Any, strength: float | int) -> Tensor:
    r"""The sum of magnitudes: every weight is drawn to 0 with one force, so that many end there.

    .. math:: \lambda \sum_i |w_i|

    It is the prior of a Laplace distribution. `weights` as for `l2`. Book: Alice 9.2.1.

    >>> l1(torch.tensor([1.0, -2.0]), 0.5)
    tensor(1.5000)
    """
    return _total(weights, strength, "l1", lambda w: w.abs().sum())


def group_sparsity(weights: Any, strength: float | int, *, axis: int = 0) -> Tensor:
    r"""The sum of lengths: whole units go to 0 together.

    .. math:: \lambda \sum_g \sqrt{|g|}\, \lVert w_g \rVert_2

    A group is what has one index along `axis`: 0 is what comes into a unit of a linear layer, 1 what goes out of it. A
    group at 0 stays there. `weights` as for `l2`; those with fewer than two axes are one group.
    Book: Alice 9.2.1. Paper: Yuan and Lin, 2006.

    >>> group_sparsity(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), 1)
    tensor(7.0711)
    """

    def lengths(w: Tensor) -> Tensor:
        rows = w.movedim(axis, 0).flatten(1) if w.dim() > 1 else w.reshape(1, -1)
        return math.sqrt(rows.shape[1]) * torch.linalg.vector_norm(rows, dim=1).sum()

    return _total(weights, strength, "group_sparsity", lengths)


def product_l1(a: Any, b: Any, strength: float | int) -> Tensor:
    r"""L1 of a product of parameters, smooth everywhere: plain gradient descent can follow it.

    .. math:: \frac{\lambda}{2} \bigl( \lVert a \rVert^2 + \lVert b \rVert^2 \bigr) \ge \lambda \lVert a \odot b \rVert_1

    with equality where :math:`|a| = |b|`, so the least over all a and b with one product is its L1. (The book leaves the
    half out.) Shapes: a, b of one shape. Book: Alice 9.2.1. Paper: Ziyin and Wang, 2023.

    >>> product_l1(torch.tensor([2.0]), torch.tensor([-2.0]), 1)
    tensor(4.)
    """
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Tensor):
            raise WonderlandError(f"product_l1 takes a tensor as its {name}, not a {type(value).__name__}.")
    if a.shape != b.shape:
        raise WonderlandError(
            f"product_l1 got an a of shape {tuple(a.shape)} and a b of shape {tuple(b.shape)}: give both one shape."
        )
    return _total([a, b], strength, "product_l1", lambda w: w.square().sum() / 2)


def _total(weights: Any, strength: Any, name: str, cost: Any) -> Tensor:
    found = _found(weights, name)
    if isinstance(strength, bool) or not isinstance(strength, int | float) or not 0 <= strength < math.inf:
        raise WonderlandError(f"{name} takes a strength of at least 0, not {strength!r}.")
    if strength == 0:  # nothing is added then, not even a gradient of 0
        return found[0].new_zeros(())
    return strength * torch.stack([cost(w) for w in found]).sum()


def _found(weights: Any, name: str) -> list[Tensor]:
    if isinstance(weights, nn.Module):
        weights = groups(weights, weight_decay=1.0)
        weights = [w for group in weights if group["weight_decay"] for w in group["params"]]
    elif isinstance(weights, Tensor):
        weights = [weights]
    found = list(weights) if isinstance(weights, Iterable) else []
    if not found or not all(isinstance(w, Tensor) and w.is_floating_point() for w in found):
        raise WonderlandError(
            f"{name} takes as its weights a tensor of numbers, several of them, or a model that has some."
        )
    return found
