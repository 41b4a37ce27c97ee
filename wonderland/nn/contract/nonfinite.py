"""A broken token (NaN or infinite) must not reach those before it: 0 times NaN is NaN, in fused kernels too."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.ops import native


def quarantine(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """`x` (b, t, d) with 0 in its broken tokens, and where they are (b, t); None when all is well.

    Causal attention gives weight 0 to the future, but its kernels still multiply that 0 with the future's values.
    """
    if x.shape[1] == 1 or x.is_meta or native.imagined():
        return x, None
    # One number tells whether to look closer; a compiled program cannot ask, and always looks.
    asks = not torch.compiler.is_compiling() and not native.transformed()
    if asks and math.isfinite(x.detach().sum().item()):
        return x, None
    broken = ~x.detach().isfinite().all(-1)
    if asks and not broken.any():
        return x, None  # sound numbers whose sum is too large for their type
    return x.masked_fill(broken.unsqueeze(-1), 0), broken


def release(y: Tensor, broken: Tensor | None, window: int | None = None) -> Tensor:
    """`y` (b, t, d) with NaN at every position that saw a broken token: its own, and those less than `window` after it."""
    if broken is None:
        return y
    count = broken.cumsum(1)
    if window is not None and window < y.shape[1]:
        count = count - F.pad(count[:, :-window], (window, 0))
    return y.masked_fill((count > 0).unsqueeze(-1), math.nan)


def spoil(entries: Tensor, broken: Tensor | None) -> Tensor:
    """A cache (b, n + t, w) whose last t entries are those of a piece, with NaN for its broken tokens."""
    if broken is None:
        return entries
    n = entries.shape[1] - broken.shape[1]
    return entries.masked_fill(F.pad(broken, (n, 0)).unsqueeze(-1), math.nan)
