"""CTC: the likelihood of a short sequence from frames without an alignment, its best alignment, and what frames say by themselves."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError

LOWEST = -1e30  # of the recursion, instead of minus infinity, whose gradient is not a number


def ctc_loss(logits: Tensor, targets: Tensor, input_lengths: Tensor | None = None, *, blank: int = 0) -> Tensor:
    r"""Minus the log-likelihood of each target, summed over all paths that collapse to it. Shape: (b,).

    .. math:: -\log p(y \mid x) = -\log \sum_{\pi : B(\pi) = y} \prod_{t=1}^{T} p(\pi_t \mid x)

    B takes repetitions away and then blanks. Shapes: logits (b, t, v), targets (b, u) with -1 after the end of each, input_lengths
    (b,) frames that count (default: all). A target that is too long for its frames has an infinite loss. Book: Alice 11.2.4.
    Paper: Graves et al., 2006.

    >>> ctc_loss(torch.zeros(1, 2, 3), torch.tensor([[1]])).exp().item()  # three of nine paths: 1 1, 1 -, - 1
    3.0
    """
    steps, lengths = _checked(logits, targets, input_lengths, blank)
    plain = targets.clamp_min(0)
    filler = 1 if blank == 0 else 0
    plain = torch.where(targets < 0, filler, plain)
    log_probabilities = logits.log_softmax(-1).transpose(0, 1)
    return F.ctc_loss(log_probabilities, plain, steps, lengths, blank=blank, reduction="none")


def reference(logits: Tensor, targets: Tensor, input_lengths: Tensor | None = None, *, blank: int = 0) -> Tensor:
    """The recursion over prefixes of the target with blanks between its tokens, one example and one frame at a time."""
    steps, lengths = _checked(logits, targets, input_lengths, blank)
    losses = []
    for row in range(len(logits)):
        scores = logits[row, : int(steps[row])].log_softmax(-1)
        extended, skips = _extended(targets[row, : int(lengths[row])], blank)
        alpha = torch.full((len(extended),), LOWEST, dtype=scores.dtype)
        alpha = torch.where(torch.arange(len(extended)) < 2, scores[0, extended], alpha)
        for frame in scores[1:]:
            before = F.pad(alpha, (1, 0), value=LOWEST)[:-1]
            two = torch.where(skips, F.pad(alpha, (2, 0), value=LOWEST)[:-2], LOWEST)
            alpha = torch.stack([alpha, before, two]).logsumexp(0) + frame[extended]
        losses.append(-alpha[-2:].logsumexp(0))
    return torch.stack(losses)


def ctc_align(logits: Tensor, target: Tensor, *, blank: int = 0) -> tuple[Tensor, Tensor]:
    """The most likely path that collapses to a target: the token of each frame (t,), and the frame at which each token begins (u,).

    Shapes: logits (t, v), target (u,).

    >>> path, starts = ctc_align(torch.eye(3)[[0, 1, 1, 0, 2]] * 9, torch.tensor([1, 2]))
    >>> path.tolist(), starts.tolist()
    ([0, 1, 1, 0, 2], [1, 4])
    """
    extended, skips = _extended(target, blank)
    scores = logits.log_softmax(-1)[:, extended]
    count = len(extended)
    best = torch.where(torch.arange(count) < 2, scores[0], -torch.inf)
    came = []
    for frame in scores[1:]:
        before = F.pad(best, (1, 0), value=-torch.inf)[:-1]
        two = torch.where(skips, F.pad(best, (2, 0), value=-torch.inf)[:-2], -torch.inf)
        best, step = torch.stack([best, before, two]).max(0)
        came.append(step)
        best = best + frame
    place = count - 1 if count == 1 or best[-1] >= best[-2] else count - 2
    if best[place] == -torch.inf:
        raise WonderlandError(
            f"{len(target)} tokens do not fit into {len(logits)} frames: give more frames, or a shorter target."
        )
    places = [place]
    for step in reversed(came):
        place = place - int(step[place])
        places.append(place)
    order = torch.tensor(places[::-1])
    starts = torch.tensor([int((order == 2 * i + 1).nonzero()[0]) for i in range(len(target))], dtype=torch.int64)
    return extended[order], starts


def ctc_greedy(logits: Tensor, *, blank: int = 0) -> list[list[int]]:
    """The likeliest token of each frame, without repetitions and blanks. Shapes: (b, t, v) -> lists of tokens.

    >>> ctc_greedy(torch.eye(3)[[0, 1, 1, 0, 1, 2]][None])
    [[1, 1, 2]]
    """
    return [collapse(row.tolist(), blank) for row in logits.argmax(-1)]


def collapse(path: list[int], blank: int = 0) -> list[int]:
    """A path without repetitions and blanks: B of `ctc_loss`.

    >>> collapse([0, 1, 1, 0, 1, 2, 2])
    [1, 1, 2]
    """
    return [token for token, before in zip(path, [None, *path[:-1]], strict=True) if token not in (blank, before)]


def _extended(target: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """The target with blanks around its tokens (2 u + 1,), and where two places back may be skipped to."""
    extended = torch.full((2 * len(target) + 1,), blank, dtype=torch.int64)
    extended[1::2] = target
    skips = torch.zeros(len(extended), dtype=torch.bool)
    skips[3::2] = target[1:] != target[:-1]
    return extended, skips


def _checked(logits: Tensor, targets: Tensor, input_lengths: Tensor | None, blank: int) -> tuple[Tensor, Tensor]:
    if logits.dim() != 3 or targets.dim() != 2 or len(logits) != len(targets):
        raise WonderlandError(
            f"CTC takes logits (b, t, v) and targets (b, u), not {tuple(logits.shape)} and {tuple(targets.shape)}."
        )
    if (
        not 0 <= blank < logits.shape[2]
        or bool((targets == blank).any())
        or (targets.numel() and int(targets.max()) >= logits.shape[2])
    ):
        raise WonderlandError(
            f"Targets of CTC are tokens below {logits.shape[2]} other than the blank {blank}, and -1 after the end."
        )
    lengths = (targets >= 0).sum(1)
    steps = torch.full((len(logits),), logits.shape[1]) if input_lengths is None else input_lengths
    return steps, lengths
