"""Fast sampling with top-k, top-p and min-p: each keeps a prefix of the sorted tokens, so one sort serves all three."""

from typing import Any

import numpy as np

LARGE_VOCAB = 4096  # above this, only the tokens that can be kept are sorted


def draw_truncated(logits: np.ndarray, uniform: np.ndarray, k: Any, p: Any, share: Any) -> list[int]:
    """A token for each row of logits (b, vocab), float64, drawn at `uniform` (b, 1) from the distribution that `rules` define.

    k, p and share are those of top-k, top-p and min-p, None for a rule that is not used. -1 for rows without a finite maximum.
    The logits are modified.
    """
    top = logits.max(-1, keepdims=True)
    if not np.isfinite(top).all():
        # Rows whose maximum is infinite or NaN get no token.
        logits[~np.isfinite(top[:, 0])] = -np.inf
        top[~np.isfinite(top)] = 0
    logits -= top
    if k is None and p is None and share is None:
        return _invert(np.exp(logits, out=logits), uniform)
    if logits.shape[1] > LARGE_VOCAB:
        return [token for row, u in zip(logits, uniform, strict=True) for token in _draw_large(row, u, k, p, share)]
    order = (-logits).argsort(-1)
    ordered = np.take_along_axis(logits, order, -1)
    ranks = _invert(_truncate(ordered, k, p, share), uniform)
    return [int(row[rank]) if rank >= 0 else -1 for row, rank in zip(order, ranks, strict=True)]


def _truncate(ordered: np.ndarray, k: Any, p: Any, share: Any) -> np.ndarray:
    """The weights of tokens in falling order (b, n), 0 for those that a rule removes; equal ones are treated alike."""
    weights = np.exp(ordered)
    if k is not None and k < weights.shape[1]:
        weights[ordered < ordered[:, k - 1 : k]] = 0
    if p is not None and p < 1:
        mass = weights.cumsum(-1)
        last = (mass < p * mass[:, -1:]).sum(-1, keepdims=True).clip(max=weights.shape[1] - 1)
        weights[ordered < np.take_along_axis(ordered, last, -1)] = 0
    if share is not None and share > 0:
        weights[ordered < np.log(share)] = 0
    return weights


def _draw_large(row: np.ndarray, uniform: np.ndarray, k: Any, p: Any, share: Any) -> list[int]:
    """One row of a large vocabulary: tokens that the rules surely remove are left out before sorting."""
    cut = -np.inf if k is None or k >= len(row) else np.partition(row, len(row) - k)[len(row) - k]
    least, mass = cut, None
    if share is not None and share > 0:
        least = max(least, np.log(share))
    if p is not None and p < 1:
        mass = p * np.exp(row[row >= cut] if k is not None else row).sum()
        # The largest weight is 1, so all tokens below this threshold together weigh less than what top-p removes.
        least = max(least, np.log((1 - p) / len(row)))
    candidates = np.flatnonzero(row >= least)
    if not len(candidates):
        return [-1]
    order = candidates[(-row[candidates]).argsort()]
    ordered = row[order]
    weights = np.exp(ordered)
    if mass is not None:
        last = min(int(weights.cumsum().searchsorted(mass)), len(order) - 1)
        weights[ordered < ordered[last]] = 0
    return [int(order[rank]) if rank >= 0 else -1 for rank in _invert(weights[None], uniform[None])]


def _invert(weights: np.ndarray, uniform: np.ndarray) -> list[int]:
    """The first index of each row at which the cumulative sum exceeds uniform times the total: never one of weight 0."""
    cumulative = weights.cumsum(-1)
    total = cumulative[:, -1:]
    if len(weights) == 1:
        index = int(cumulative[0].searchsorted(uniform[0, 0] * total[0, 0], side="right"))
        return [index if total[0, 0] > 0 else -1]
    indices = (cumulative <= uniform * total).sum(-1)
    return np.where(total[:, 0] > 0, indices, -1).tolist()
