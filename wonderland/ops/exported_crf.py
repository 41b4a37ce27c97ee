"""The algorithms of `ops.crf` as loops over time that exported programs keep, for any number of positions."""

import torch
from torch import Tensor

from wonderland.ops.over_time import over_time


def forward_scores(scores: Tensor, transitions: Tensor, first: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """log of the summed scores of all paths up to each position that end in each tag: the last one (b, k), and all (b, t, k)."""

    def step(state: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        (ahead, begun), (score, here) = state, now
        reached = torch.logsumexp(ahead.unsqueeze(2) + transitions, 1)
        ahead = torch.where(here > 0, torch.where(begun > 0, reached, first) + score, ahead)
        return (ahead, torch.maximum(begun, here)), (ahead,)

    (ahead, _), steps = _run(
        step, (torch.zeros_like(scores[:, 0]), torch.zeros_like(scores[:, 0, :1])), (scores, _shown(real, scores))
    )
    return ahead, steps


def backward_scores(scores: Tensor, transitions: Tensor, last: Tensor, real: Tensor) -> Tensor:
    """log of the summed scores of all paths from each position on, given its tag: (b, t, k)."""

    def step(state: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        (behind,), (score, here) = state, now
        before = torch.logsumexp(transitions + (score + behind).unsqueeze(1), 2)
        return (torch.where(here > 0, before, behind),), (behind,)

    start = torch.zeros_like(scores[:, 0]) + last
    _, steps = _run(step, (start,), (scores.flip(1), _shown(real, scores).flip(1)))
    return steps.flip(1)


def best_path(scores: Tensor, transitions: Tensor, first: Tensor, last: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """The path of the largest score, (b, t), -1 where masked, and that score (b,)."""
    same = torch.arange(scores.shape[2], device=scores.device)

    def step(state: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        (ahead, begun), (score, here) = state, now
        best, place = (ahead.unsqueeze(2) + transitions).max(1)
        place = torch.where((here > 0) & (begun > 0), place, same)
        ahead = torch.where(here > 0, torch.where(begun > 0, best, first) + score, ahead)
        return (ahead, torch.maximum(begun, here)), (place,)

    (ahead, _), came = _run(
        step, (torch.zeros_like(scores[:, 0]), torch.zeros_like(scores[:, 0, :1])), (scores, _shown(real, scores))
    )

    def back(state: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        (tag,), (place,) = state, now
        return (place.gather(1, tag),), (tag,)

    _, path = _run(back, ((ahead + last).argmax(1, keepdim=True),), (came.flip(1),))
    return path.flip(1).squeeze(2).masked_fill(~real, -1), (ahead + last).amax(1)


def _shown(real: Tensor, scores: Tensor) -> Tensor:
    """The mask as numbers (b, t, 1)."""
    return real.unsqueeze(2).to(scores.dtype)


def _run(step, state: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], Tensor]:
    """The last state, and the one output of each position."""
    (outputs,), last = over_time(step, state, inputs)
    return last, outputs
