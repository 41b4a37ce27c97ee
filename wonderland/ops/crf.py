r"""Linear-chain conditional random fields: the partition function, the best path, and marginals of a chain of scores.

.. math::
    s(y) = a_{y_1} + \sum_{i} u_{i, y_i} + \sum_{i > 1} T_{y_{i-1}, y_i} + b_{y_n}, \qquad
    p(y \mid x) = \frac{e^{s(y)}}{Z}, \qquad Z = \sum_{y'} e^{s(y')}

Shapes: scores u (b, t, k), transitions T (k, k) from row to column, first a (k,), last b (k,), mask (b, t), True for real
positions; masked positions are passed over. Paper: Lafferty et al., 2001.
"""

import itertools

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import exported_crf
from wonderland.ops.over_time import is_exporting


def reference(scores: Tensor, transitions: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """All paths of one row: the paths (k^t, t) and their scores (k^t,), for scores (t, k)."""
    t, k = scores.shape
    paths = torch.tensor(list(itertools.product(range(k), repeat=t)), device=scores.device)
    total = first[paths[:, 0]] + scores[torch.arange(t), paths].sum(1) + last[paths[:, -1]]
    return paths, total + transitions[paths[:, :-1], paths[:, 1:]].sum(1)


def path_score(
    scores: Tensor, tags: Tensor, transitions: Tensor, first: Tensor, last: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The score s(y) of one path for each row: tags (b, t) -> (b,). A row without real positions has 0."""
    real = _checked(scores, transitions, mask)
    tags = tags.masked_fill(~real, 0)
    own = scores.gather(2, tags.unsqueeze(2)).squeeze(2).masked_fill(~real, 0).sum(1)
    before = _previous(tags, real)
    linked = real & (before >= 0)
    steps = transitions[before.clamp_min(0), tags].masked_fill(~linked, 0).sum(1)
    begins = torch.where(real & (before < 0), first[tags], 0).sum(1)
    final = torch.where(_last_of(real), last[tags], 0).sum(1)
    return own + steps + begins + final


def log_partition(
    scores: Tensor, transitions: Tensor, first: Tensor, last: Tensor, mask: Tensor | None = None
) -> Tensor:
    """log Z of each row, by the forward algorithm: (b,). A row without real positions has 0.

    >>> log_partition(torch.zeros(1, 3, 2), torch.zeros(2, 2), torch.zeros(2), torch.zeros(2)).exp().round()
    tensor([8.])
    """
    real = _checked(scores, transitions, mask)
    ahead, _ = _forward(scores, transitions, first, real)
    return torch.where(real.any(1), torch.logsumexp(ahead + last, 1), 0)


def log_marginals(
    scores: Tensor, transitions: Tensor, first: Tensor, last: Tensor, mask: Tensor | None = None
) -> Tensor:
    """log p(y_i = k | x) of each position, by the forward and the backward algorithm: (b, t, k), 0 where masked."""
    real = _checked(scores, transitions, mask)
    if is_exporting():
        final, ahead = exported_crf.forward_scores(scores, transitions, first, real)
        joined = ahead + exported_crf.backward_scores(scores, transitions, last, real)
        return torch.where(real.unsqueeze(2), joined - torch.logsumexp(final + last, 1)[:, None, None], 0)
    final, forward = _forward(scores, transitions, first, real)
    total = torch.logsumexp(final + last, 1)
    behind, backward = last.expand(len(scores), -1), [last.expand(len(scores), -1)]
    for i in range(scores.shape[1] - 1, 0, -1):
        step = torch.logsumexp(transitions + (scores[:, i] + behind).unsqueeze(1), 2)
        behind = torch.where(real[:, i, None], step, behind)
        backward.append(behind)
    joined = torch.stack(forward, 1) + torch.stack(backward[::-1], 1)
    return torch.where(real.unsqueeze(2), joined - total[:, None, None], 0)


def best_path(
    scores: Tensor, transitions: Tensor, first: Tensor, last: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The path of the largest score and that score, by the Viterbi algorithm: (b, t), -1 where masked, and (b,).

    >>> path, score = best_path(torch.tensor([[[0., 1.], [2., 0.]]]), torch.zeros(2, 2), torch.zeros(2), torch.zeros(2))
    >>> path, score
    (tensor([[1, 0]]), tensor([3.]))
    """
    real = _checked(scores, transitions, mask)
    if is_exporting():
        tags, score = exported_crf.best_path(scores, transitions, first, last, real)
        return tags, torch.where(real.any(1), score, torch.zeros_like(score))
    b, t, k = scores.shape
    ahead, begun = first + scores[:, 0], real[:, 0]
    same = torch.arange(k, device=scores.device).expand(b, k)
    came = []
    for i in range(1, t):
        best, place = (ahead.unsqueeze(2) + transitions).max(1)
        step = torch.where(begun[:, None], best, first) + scores[:, i]
        came.append(torch.where((real[:, i] & begun)[:, None], place, same))
        ahead = torch.where(real[:, i, None], step, ahead)
        begun = begun | real[:, i]
    score, tag = (ahead + last).max(1)
    path = [tag]
    for place in reversed(came):
        tag = place.gather(1, tag.unsqueeze(1)).squeeze(1)
        path.append(tag)
    tags = torch.stack(path[::-1], 1).masked_fill(~real, -1)
    return tags, torch.where(real.any(1), score, 0)


def _forward(scores: Tensor, transitions: Tensor, first: Tensor, real: Tensor) -> tuple[Tensor, list[Tensor]]:
    """log of the summed scores of all paths up to each position that end in each tag: the last one (b, k), and all."""
    ahead, begun = first + scores[:, 0], real[:, 0]
    steps = [ahead]
    for i in range(1, scores.shape[1]):
        step = torch.logsumexp(ahead.unsqueeze(2) + transitions, 1)
        step = torch.where(begun[:, None], step, first) + scores[:, i]
        ahead = torch.where(real[:, i, None], step, ahead)
        begun = begun | real[:, i]
        steps.append(ahead)
    return ahead, steps


def _previous(tags: Tensor, real: Tensor) -> Tensor:
    """The tag of the real position before each position, -1 where there is none: (b, t)."""
    places = torch.arange(tags.shape[1], device=tags.device).expand_as(tags)
    seen = torch.where(real, places, -1).cummax(1).values
    before = torch.cat([torch.full_like(seen[:, :1], -1), seen[:, :-1]], 1)
    return torch.where(before >= 0, tags.gather(1, before.clamp_min(0)), -1)


def _last_of(real: Tensor) -> Tensor:
    """The last real position of each row (b, t)."""
    after = real.flip(1).long().cumsum(1).flip(1)
    return real & (after == 1)


def _checked(scores: Tensor, transitions: Tensor, mask: Tensor | None) -> Tensor:
    """The mask, all True where there is none."""
    if scores.dim() != 3 or 0 in scores.shape or not scores.is_floating_point():
        raise WonderlandError(f"A chain has scores (batch, time, classes), not of shape {tuple(scores.shape)}.")
    k = scores.shape[2]
    if tuple(transitions.shape) != (k, k):
        raise WonderlandError(f"Scores of {k} classes need transitions ({k}, {k}), not {tuple(transitions.shape)}.")
    if mask is None:
        return torch.ones(scores.shape[:2], dtype=torch.bool, device=scores.device)
    if mask.dtype != torch.bool or mask.shape != scores.shape[:2]:
        raise WonderlandError(
            f"The mask of a chain is boolean {tuple(scores.shape[:2])}, not {mask.dtype} {tuple(mask.shape)}."
        )
    return mask
