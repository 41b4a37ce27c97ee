"""One step of the recurrences that average and of state spaces."""

import torch
from torch import Tensor

EMPTY = -1e38


def discretise(delta: Tensor, a: Tensor, rule: str) -> tuple[Tensor, Tensor]:
    """How one step of length `delta` changes the state, and how much of the input it takes in: (decay, weight).

    >>> discretise(torch.tensor(0.5), torch.tensor(-2.0), "bilinear")
    (tensor(0.3333), tensor(0.3333))
    """
    if rule == "bilinear":
        q = 1 / (1 - delta * a / 2)
        return (1 + delta * a / 2) * q, delta * q
    decay = torch.exp(delta * a)
    if rule == "euler":
        return decay, delta.expand_as(decay)
    # (e^z - 1) / z, by its series where both are small.
    z, small, safe = apart(delta * a)
    series = 1 + z * (1 / 2 + z * (1 / 6 + z * (1 / 24 + z * (1 / 120))))
    return decay, delta * torch.where(small, series, torch.expm1(safe) / safe)


def apart(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers with 0 for those that are not small, which are small, and the numbers with 1 for those."""
    small = z.detach().abs() < (0.05 if z.element_size() <= 4 else 1e-3)
    return torch.where(small, z, torch.zeros_like(z)), small, torch.where(small, torch.ones_like(z), z)


def empty(dtype: torch.dtype) -> float:
    """The exponent of a sum of nothing: far below all others, and still a number of this type."""
    return max(EMPTY, torch.finfo(dtype).min / 2)


def weighted_step(
    state: tuple[Tensor, ...], k: Tensor, v: Tensor, decay: Tensor, bonus: Tensor
) -> tuple[tuple[Tensor, ...], Tensor]:
    """One token of `wkv`: the sums after it and their exponent, and the average at it."""
    a, b, o = state
    top = torch.maximum(o, k + bonus).detach()
    past, now = torch.exp(o - top), torch.exp(k + bonus - top)
    y = (past * a + now * v) / (past * b + now)
    top = torch.maximum(o + decay, k).detach()
    past, now = torch.exp(o + decay - top), torch.exp(k - top)
    return (past * a + now * v, past * b + now, top), y


def no_tokens(k: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """The state of `wkv` before the first token."""
    zero = torch.zeros_like(k[:, 0])
    return (zero, zero), torch.full_like(zero, empty(k.dtype))
