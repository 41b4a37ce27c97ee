"""The cache of attention: keys and values of earlier tokens, their positions, and which query may see which."""

import torch
from torch import Tensor

from wonderland.nn.contract.state import TIME, Layout, Slot, State, grow


def cache_layout(width: int) -> Layout:
    """A cache: entries (b, n, width) in the order of arrival, and their places (b, n), -1 where no token is.

    As long as no mask was given, entry j stands at j (or, in a window, n - j places before the next token) in every row;
    places are then of width 0, and their shape alone says that no mask is needed.
    """
    return (Slot((TIME, width)), Slot((TIME,), dtype=torch.int64))


def remember(
    state: State | None, new: Tensor, seen: Tensor | None, mask: Tensor | None, window: int | None
) -> tuple[Tensor, Tensor]:
    """The entries and places of a cache with those of a piece at their end."""
    if state is None:
        entries, places = new, None
    else:
        entries, places = state
        # With a window the cache is small, and copying it is as cheap as growing it in place.
        entries = grow(entries, new) if window is None else torch.cat([entries, new], 1)
    if mask is None and (places is None or places.shape[1] == 0):
        return entries, torch.empty(
            (new.shape[0], 0), dtype=torch.int64, device=new.device
        ) if places is None else places
    t, n = new.shape[1], entries.shape[1] - new.shape[1]
    here = torch.arange(t, device=new.device) + (0 if seen is None else seen.unsqueeze(1))
    here = here.expand(new.shape[0], t) if mask is None else here.masked_fill(~mask, -1)
    if n == 0:
        return entries, here
    assert places is not None
    assert seen is not None
    if places.shape[1] == 0:
        places = torch.arange(-n, 0, device=new.device) + seen.unsqueeze(1)
    return entries, torch.cat([places, here], 1)


def forget(entries: Tensor, places: Tensor, window: int | None) -> State:
    """The state to keep: everything, or the last window - 1 real tokens of each row."""
    if window is None:
        return entries, places
    total, keep = entries.shape[1], min(window - 1, entries.shape[1])
    if places.shape[1] == 0:
        kept = entries[:, total - keep :]
        # A view of its end would keep a long piece in memory.
        return (kept if total <= 2 * window else kept.clone()), places
    if keep == total:
        return entries, places
    places, index = places.topk(keep, dim=1)
    return entries.gather(1, index.unsqueeze(-1).expand(-1, -1, entries.shape[2])), places


def standing(entries: Tensor, places: Tensor, t: int, seen: Tensor | None, window: int | None) -> tuple[Tensor, Tensor]:
    """The positions of the t queries at the end of a cache and of its entries: (b, t) and (b, n), or with one row."""
    if places.shape[1]:
        # Padding gets position 0: a table of positions may end with the real tokens.
        return places[:, -t:].clamp_min(0), places
    n = entries.shape[1] - t
    keys = torch.arange(n + t, device=entries.device).unsqueeze(0)
    if window is not None and seen is not None:
        keys = keys + (seen - n).unsqueeze(1)
    return keys[:, n:], keys


def visible(queries: Tensor, keys: Tensor, causal: bool, window: int | None) -> Tensor:
    """Which entries each query sees, by their places: (b, q), (b, k) -> (b, 1, q, k), or with one row for all queries.

    A query with nothing to see (padding, before the first token of its row) sees everything: its output is not used, and a
    softmax over nothing would be NaN.
    """
    gap = queries.unsqueeze(2) - keys.unsqueeze(1)
    allowed = (keys >= 0).unsqueeze(1)
    if causal:
        allowed = allowed & (gap >= 0)
    if window is not None:
        allowed = allowed & (gap < window) & (gap > -window)
    return (allowed | ~allowed.any(-1, keepdim=True)).unsqueeze(1)
