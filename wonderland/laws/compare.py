"""Distances between outputs and between gradients, and gradients of a weighted sum."""

from collections.abc import Sequence

import torch
from torch import Tensor

TINY = 1e-300


def gap(actual: Tensor, expected: Tensor) -> tuple[float, float, tuple[int, ...]]:
    """(largest difference relative to the largest expected value, largest difference, its index).

    Equal NaN and inf count as equal; NaN or inf against anything else is an infinite difference.

    >>> gap(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0]))
    (0.25, 0.5, (1,))
    """
    if actual.shape != expected.shape:
        return float("inf"), float("inf"), ()
    if not actual.numel():
        return 0.0, 0.0, ()
    actual, expected = actual.detach(), expected.detach()
    difference = (actual - expected).abs() if actual.dtype != torch.bool else (actual != expected).double()
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    difference = torch.where(same, torch.zeros_like(difference), difference).double().nan_to_num(nan=float("inf"))
    worst = int(difference.argmax())
    place = tuple(int(number) for number in torch.unravel_index(torch.tensor(worst), difference.shape))
    finite = expected.abs().double()
    size = float(finite[finite.isfinite()].max()) if finite.isfinite().any() else 0.0
    amount = float(difference.reshape(-1)[worst])
    return amount / max(size, TINY) if amount else 0.0, amount, place


def gradient_gap(actual: Sequence[Tensor], expected: Sequence[Tensor]) -> tuple[float, int]:
    """The largest relative difference between lists of gradients, and its index in the list.

    A gradient is compared with its own size, but at least with 1e-6 of the largest one: smaller differences are rounding.
    """
    sizes = [float(value.abs().max()) if value.numel() else 0.0 for value in expected]
    floor = 1e-6 * max([*sizes, 0.0])
    worst, index = 0.0, 0
    for number, (gradient, reference, size) in enumerate(zip(actual, expected, sizes, strict=True)):
        amount = gap(gradient, reference)[1]
        share = amount / max(size, floor, TINY) if amount else 0.0
        if not share <= worst:
            worst, index = share, number
    return worst, index


def weighted_gradients(out: Tensor, weights: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Gradients of the sum of output * weights with respect to the leaves; zeros where it does not depend on one."""
    if not out.requires_grad or not leaves:
        return [torch.zeros_like(leaf) for leaf in leaves]
    total = (out * weights.to(out)).sum()
    total = total.real if total.is_complex() else total
    gradients = torch.autograd.grad(total, list(leaves), allow_unused=True)
    return [
        torch.zeros_like(leaf) if gradient is None else gradient.detach()
        for gradient, leaf in zip(gradients, leaves, strict=True)
    ]


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have equal shape, dtype and values, with NaN at the same places."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(((a == b) | (a.isnan() & b.isnan())).all())
