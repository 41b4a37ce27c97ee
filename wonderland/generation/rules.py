"""Sampling rules: pure functions on the logits of the next token, each with its equation.

A token that a rule removes gets the logit -inf. In the equations p = softmax(logits). Tokens of equal probability are kept or
removed together, so that the result does not depend on the order of sorting.
"""

import math

import torch
from torch import Tensor

from wonderland.core import WonderlandError

FIRST = 1024  # top_p sorts this many of the largest logits first, and the whole vocabulary only if they are not enough


def apply_temperature(logits: Tensor, temperature: float | int) -> Tensor:
    r"""Temperature: sharper below 1, flatter above.

    .. math:: p_i \propto \exp(z_i / \tau)

    Shapes: logits (..., vocab) -> the same. Book: Alice 8.4.

    >>> import torch
    >>> apply_temperature(torch.tensor([1.0, 2.0]), 0.5)
    tensor([2., 4.])
    """
    if temperature == 1:
        return logits
    if temperature < 1e-3:
        # The same distribution, but the quotient cannot overflow.
        logits = logits - logits.amax(-1, keepdim=True)
    return logits / temperature


def top_k(logits: Tensor, k: int) -> Tensor:
    r"""Only the k most likely tokens.

    .. math:: \{ i : z_i \ge z_{(k)} \}

    Shapes: logits (..., vocab) -> the same. Paper: Fan et al., 2018.

    >>> import torch
    >>> top_k(torch.tensor([1.0, 3.0, 2.0]), 2)
    tensor([-inf, 3., 2.])
    """
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise WonderlandError(f"top_k keeps a whole number of tokens from 1, not {k!r}.")
    if k >= logits.shape[-1]:
        return logits
    return logits.masked_fill(logits < logits.topk(k).values[..., -1:], -math.inf)


def top_p(logits: Tensor, p: float | int) -> Tensor:
    r"""The nucleus: the fewest most likely tokens that together have probability p.

    .. math:: \{ i : \textstyle\sum_{j : p_j > p_i} p_j < p \}

    Shapes: logits (..., vocab) -> the same. Paper: Holtzman et al., 2020.

    >>> import torch
    >>> top_p(torch.tensor([0.5, 0.3, 0.2]).log(), 0.7).exp()
    tensor([0.5000, 0.3000, 0.0000])
    """
    if p >= 1:
        return logits
    total = logits.logsumexp(-1, keepdim=True)
    size = min(FIRST, logits.shape[-1])
    largest = logits.topk(size).values
    mass = (largest - total).exp().cumsum(-1)
    if size < logits.shape[-1] and not bool((mass[..., -1] >= p).all()):
        largest = logits.sort(descending=True).values
        mass = (largest - total).exp().cumsum(-1)
    # The first token at which the mass reaches p is the last one kept.
    last = (mass < p).sum(-1, keepdim=True).clamp_max(largest.shape[-1] - 1)
    return logits.masked_fill(logits < largest.gather(-1, last), -math.inf)


def min_p(logits: Tensor, p: float | int) -> Tensor:
    r"""Tokens at least p times as likely as the most likely one.

    .. math:: \{ i : p_i \ge p \max_j p_j \}

    Shapes: logits (..., vocab) -> the same. Paper: Nguyen et al., 2024.

    >>> import torch
    >>> min_p(torch.tensor([0.5, 0.3, 0.2]).log(), 0.5).exp()
    tensor([0.5000, 0.3000, 0.0000])
    """
    if p <= 0:
        return logits
    return logits.masked_fill(logits < logits.amax(-1, keepdim=True) + math.log(p), -math.inf)


def typical(logits: Tensor, mass: float | int) -> Tensor:
    r"""Locally typical tokens: those whose surprisal is nearest to the entropy, until they have the mass.

    .. math:: d_i = \lvert -\log p_i - H(p) \rvert, \qquad \{ i : \textstyle\sum_{j : d_j < d_i} p_j < m \}

    Shapes: logits (..., vocab) -> the same. Paper: Meister et al., 2023.

    >>> import torch
    >>> typical(torch.tensor([0.6, 0.3, 0.1]).log(), 0.2).exp()
    tensor([0.0000, 0.3000, 0.0000])
    """
    if mass >= 1:
        return logits
    surprisal = -logits.log_softmax(-1)
    probabilities = (-surprisal).exp()
    entropy = (probabilities * surprisal).nansum(-1, keepdim=True)
    distance = (surprisal - entropy).abs()
    nearest, order = distance.sort()
    reached = probabilities.gather(-1, order).cumsum(-1)
    last = (reached < mass).sum(-1, keepdim=True).clamp_max(logits.shape[-1] - 1)
    return logits.masked_fill(distance > nearest.gather(-1, last), -math.inf)


def penalize_repetition(logits: Tensor, seen: Tensor, penalty: float | int) -> Tensor:
    r"""Repetition penalty: tokens of the text so far become less likely (penalty above 1) or more likely (below 1).

    .. math:: z_i \leftarrow z_i / \theta \ \text{if}\ z_i > 0 \ \text{else}\ \theta z_i, \qquad i \in \mathrm{seen}

    Shapes: logits (..., vocab), seen (..., vocab) bool -> the same. Paper: Keskar et al., 2019.

    >>> import torch
    >>> penalize_repetition(torch.tensor([2.0, -2.0, 1.0]), torch.tensor([True, True, False]), 2.0)
    tensor([ 1., -4.,  1.])
    """
    if not isinstance(seen, Tensor) or seen.dtype != torch.bool or seen.shape[-1:] != logits.shape[-1:]:
        raise WonderlandError(
            "penalize_repetition takes seen as booleans (..., vocab), True for tokens of the text so far, not as token ids."
        )
    if not 0 < penalty < math.inf:
        raise WonderlandError(f"penalize_repetition takes a finite penalty above 0, not {penalty}.")
    if penalty == 1:
        return logits
    return logits.where(~seen, (logits / penalty).where(logits > 0, logits * penalty))
