"""Tokens that are NaN or infinite must not change the outputs before them, although 0 times NaN is NaN.

Causal attention gives the future a weight of 0 and multiplies with it all the same. A mixer that does so declares
`weighs_unseen`; the contract then shows it zeros in place of such tokens, and puts NaN into all outputs that see them and
into the state.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.nn.contract.state import State
from wonderland.ops import native


def mask_nonfinite(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """`x` (b, t, d) with 0 in tokens that are not finite, and where these are (b, t); None where all are finite."""
    if x.shape[1] == 1 or x.is_meta or native.is_shapes_only():
        return x, None
    # One sum tells whether to look closer; compiled and transformed programs cannot branch on it, and always look.
    can_branch = not torch.compiler.is_compiling() and not native.is_transformed()
    if can_branch and math.isfinite(x.detach().sum().item()):
        return x, None
    nonfinite = ~x.detach().isfinite().all(-1)
    if can_branch and not nonfinite.any():
        return x, None  # finite numbers whose sum overflows
    return x.masked_fill(nonfinite.unsqueeze(-1), 0), nonfinite


def restore_nonfinite(y: Tensor, nonfinite: Tensor | None, window: int | None = None) -> Tensor:
    """`y` (b, t, d) with NaN at each position that sees a token that is not finite: at it, and less than `window` after it."""
    if nonfinite is None:
        return y
    count = nonfinite.cumsum(1)
    if window is not None and window < y.shape[1]:
        count = count - F.pad(count[:, :-window], (window, 0))
    return y.masked_fill((count > 0).unsqueeze(-1), math.nan)


def restore_state(state: State, nonfinite: Tensor | None, seen: Tensor | None) -> State:
    """The state after a piece with NaN where it holds a token that is not finite.

    In a cache (entries and their places, see `mixers.cache`) that is the entry of the token; a state of fixed size is NaN as
    a whole, in that row.
    """
    if nonfinite is None:
        return state
    places = [entry for entry in state if not entry.is_floating_point()]
    if places:
        entries = state[0]
        return entries.masked_fill(_cached(entries, places[0], nonfinite, seen).unsqueeze(-1), math.nan), *places
    rows = nonfinite.any(1)
    return tuple(entry.masked_fill(rows.view(-1, *[1] * (entry.dim() - 1)), math.nan) for entry in state)


def _cached(entries: Tensor, places: Tensor, nonfinite: Tensor, seen: Tensor | None) -> Tensor:
    """Which entries (b, n) of a cache are tokens of the last piece that are not finite."""
    n, t = entries.shape[1], nonfinite.shape[1]
    if places.shape[1] == 0:
        # Without masks, entries lie in the order of tokens; a window may have dropped the first of the piece.
        return F.pad(nonfinite, (n - t, 0)) if n >= t else nonfinite[:, t - n :]
    index = places if seen is None else places - seen.unsqueeze(1)
    return nonfinite.gather(1, index.clamp(0, t - 1)) & (places >= 0) & (index >= 0)
