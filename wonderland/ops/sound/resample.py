"""Resampling: a signal at another rate, by sinc interpolation with a window, the taps of each phase computed once."""

import functools
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError

CHUNK = 1 << 18  # outputs that are computed at once


def resample(x: Tensor, old: int, new: int, *, zeros: int = 6, rolloff: float = 0.99) -> Tensor:
    r"""The signal at rate `new` instead of `old`.

    .. math::
        y_n = \sum_k x_k\, g(n / r_\mathrm{new} - k / r_\mathrm{old}), \qquad
        g(t) = \frac{f}{r_\mathrm{old}}\, \mathrm{sinc}(f t)\, \cos^2\!\left(\frac{\pi f t}{2 z}\right) \text{ for } |f t| \le z, \qquad
        f = \rho \min(r_\mathrm{old}, r_\mathrm{new})

    `zeros` (z) is the number of zero crossings on each side, `rolloff` (rho) where the low pass begins: torchaudio's definition,
    with its defaults. Shapes: x (..., samples) -> (..., ceil(samples new / old)).

    >>> resample(torch.ones(80), 8000, 16000).shape
    torch.Size([160])
    """
    if min(old, new) < 1 or zeros < 1 or not 0 < rolloff <= 1:
        raise WonderlandError(
            f"Resampling needs rates of at least 1, not {old} to {new}, at least one zero, and a rolloff in (0, 1]."
        )
    if old == new or not x.numel():
        return x if old == new else x.new_zeros(*x.shape[:-1], -(-x.shape[-1] * new // old))
    shared = math.gcd(old, new)
    old, new = old // shared, new // shared
    taps, firsts, reach = _taps(old, new, zeros, float(rolloff))
    taps = taps.to(x.device, x.dtype)
    count = -(-x.shape[-1] * new // old)
    flat = x.reshape(-1, x.shape[-1])
    width = taps.shape[1]
    windows = F.pad(flat, (reach, width + old)).unfold(-1, width, 1)
    pieces = []
    for start in range(0, count, CHUNK):
        n = torch.arange(start, min(count, start + CHUNK), device=x.device)
        phase = n % new
        first = torch.div(n, new, rounding_mode="floor") * old + firsts.to(x.device)[phase] + reach
        pieces.append(torch.einsum("btw,tw->bt", windows[:, first], taps[phase]))
    return torch.cat(pieces, -1).reshape(*x.shape[:-1], count)


@functools.lru_cache(16)
def _taps(old: int, new: int, zeros: int, rolloff: float) -> tuple[Tensor, Tensor, int]:
    """For each phase n of `new`: its taps (new, w), and the input that the first of them is for (new,)."""
    base = rolloff * min(old, new)
    reach = math.ceil(zeros * old / base)
    centres = torch.arange(new, dtype=torch.float64) * old / new  # in samples of the input
    firsts = centres.floor().long() - reach
    index = firsts[:, None] + torch.arange(2 * reach + 2)
    return kernel((centres[:, None] - index) / old, old, base, zeros), firsts, reach + 1


def kernel(time: Tensor, old: int, base: float, zeros: int) -> Tensor:
    """g of `resample` at times t, where `base` is f."""
    t = base * time
    window = torch.where(t.abs() <= zeros, torch.cos(t * math.pi / zeros / 2).square(), 0.0)
    return torch.sinc(t) * window * base / old


def reference(x: Tensor, old: int, new: int, *, zeros: int = 6, rolloff: float = 0.99) -> Tensor:
    """The sum of `resample` as it is written, over all inputs."""
    count = -(-x.shape[-1] * new // old)
    n, k = torch.arange(count, dtype=torch.float64), torch.arange(x.shape[-1], dtype=torch.float64)
    weights = kernel(n[:, None] / new - k / old, old, rolloff * min(old, new), zeros)
    return x @ weights.to(x).T
