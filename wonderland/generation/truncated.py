"""The rules of sampling in one pass, for speed: top-k, top-p and min-p all keep the beginning of the sorted tokens."""

from typing import Any

import numpy as np

WIDE = 4096  # vocabularies above this are not sorted whole


def draw_rows(logits: np.ndarray, uniform: np.ndarray, k: Any, p: Any, share: Any) -> list[int]:
    """A token for each row of logits (b, vocab), float64, at `uniform` (b, 1): the distribution that `rules` describe.

    k, p and share are those of top-k, top-p and min-p, None where they do not apply. -1 stands where nothing can be drawn.
    The logits are written to.
    """
    top = logits.max(-1, keepdims=True)
    if not np.isfinite(top).all():
        # Nothing can be drawn where the largest is -inf, inf or no number.
        logits[~np.isfinite(top[:, 0])] = -np.inf
        top[~np.isfinite(top)] = 0
    logits -= top
    if k is None and p is None and share is None:
        return _invert(np.exp(logits, out=logits), uniform)
    if logits.shape[1] > WIDE:
        return [token for row, u in zip(logits, uniform, strict=True) for token in _wide(row, u, k, p, share)]
    order = (-logits).argsort(-1)
    ordered = np.take_along_axis(logits, order, -1)
    found = _invert(_kept(ordered, k, p, share), uniform)
    return [int(row[at]) if at >= 0 else -1 for row, at in zip(order, found, strict=True)]


def _kept(ordered: np.ndarray, k: Any, p: Any, share: Any) -> np.ndarray:
    """The weights of tokens in falling order (b, n), 0 for those that a rule takes out; ties stay together."""
    weights = np.exp(ordered)
    if k is not None and k < weights.shape[1]:
        weights[ordered < ordered[:, k - 1 : k]] = 0
    if p is not None and p < 1:
        reached = weights.cumsum(-1)
        last = (reached < p * reached[:, -1:]).sum(-1, keepdims=True).clip(max=weights.shape[1] - 1)
        weights[ordered < np.take_along_axis(ordered, last, -1)] = 0
    if share is not None and share > 0:
        weights[ordered < np.log(share)] = 0
    return weights


def _wide(row: np.ndarray, uniform: np.ndarray, k: Any, p: Any, share: Any) -> list[int]:
    """One row of a large vocabulary: tokens that no rule can keep are left out before the rest is sorted."""
    cut = -np.inf if k is None or k >= len(row) else np.partition(row, len(row) - k)[len(row) - k]
    least, mass = cut, None
    if share is not None and share > 0:
        least = max(least, np.log(share))
    if p is not None and p < 1:
        mass = p * np.exp(row[row >= cut] if k is not None else row).sum()
        # The largest weighs 1: all tokens below this together weigh less than what the nucleus leaves out.
        least = max(least, np.log((1 - p) / len(row)))
    near = np.flatnonzero(row >= least)
    if not len(near):
        return [-1]
    order = near[(-row[near]).argsort()]
    ordered = row[order]
    weights = np.exp(ordered)
    if mass is not None:
        last = min(int(weights.cumsum().searchsorted(mass)), len(order) - 1)
        weights[ordered < ordered[last]] = 0
    return [int(order[at]) if at >= 0 else -1 for at in _invert(weights[None], uniform[None])]


def _invert(weights: np.ndarray, uniform: np.ndarray) -> list[int]:
    """Where the cumulative sum of each row of weights first lies above its share of the total: never at weight 0."""
    reached = weights.cumsum(-1)
    total = reached[:, -1:]
    if len(weights) == 1:
        at = int(reached[0].searchsorted(uniform[0, 0] * total[0, 0], side="right"))
        return [at if total[0, 0] > 0 else -1]
    found = (reached <= uniform * total).sum(-1)
    return np.where(total[:, 0] > 0, found, -1).tolist()
