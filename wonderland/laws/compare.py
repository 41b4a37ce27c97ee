"""How far two answers are apart, and where."""

from collections.abc import Sequence

import torch
from torch import Tensor

TINY = 1e-300


def gap(found: Tensor, expected: Tensor) -> tuple[float, float, tuple[int, ...]]:
    """(difference as a share of the largest expected value, difference, place): NaN and inf differ by infinity.

    >>> gap(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0]))
    (0.25, 0.5, (1,))
    """
    if found.shape != expected.shape:
        return float("inf"), float("inf"), ()
    if not found.numel():
        return 0.0, 0.0, ()
    found, expected = found.detach(), expected.detach()
    apart = (found - expected).abs() if found.dtype != torch.bool else (found != expected).double()
    same = (found == expected) | (found.isnan() & expected.isnan())
    apart = torch.where(same, torch.zeros_like(apart), apart).double().nan_to_num(nan=float("inf"))
    worst = int(apart.argmax())
    place = tuple(int(number) for number in torch.unravel_index(torch.tensor(worst), apart.shape))
    finite = expected.abs().double()
    size = float(finite[finite.isfinite()].max()) if finite.isfinite().any() else 0.0
    amount = float(apart.reshape(-1)[worst])
    return amount / max(size, TINY) if amount else 0.0, amount, place


def apart(found: Sequence[Tensor], expected: Sequence[Tensor]) -> tuple[float, int]:
    """The largest relative gap between lists of gradients, and in which: sizes far below the largest count as rounding."""
    sizes = [float(value.abs().max()) if value.numel() else 0.0 for value in expected]
    floor = 1e-6 * max([*sizes, 0.0])
    worst, index = 0.0, 0
    for number, (one, other, size) in enumerate(zip(found, expected, sizes, strict=True)):
        amount = gap(one, other)[1]
        share = amount / max(size, floor, TINY) if amount else 0.0
        if not share <= worst:
            worst, index = share, number
    return worst, index


def slopes(out: Tensor, weights: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Gradients of a weighted sum of the output; 0 for what it does not depend on."""
    if not out.requires_grad or not leaves:
        return [torch.zeros_like(leaf) for leaf in leaves]
    total = (out * weights.to(out)).sum()
    total = total.real if total.is_complex() else total
    found = torch.autograd.grad(total, list(leaves), allow_unused=True)
    return [
        torch.zeros_like(leaf) if slope is None else slope.detach() for slope, leaf in zip(found, leaves, strict=True)
    ]


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal in every bit that matters: shape, type, values, NaN at the same places."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | (one.isnan() & other.isnan())).all())
