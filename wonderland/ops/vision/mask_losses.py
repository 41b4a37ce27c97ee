"""Losses for rare things: focal loss for boxes among many empty anchors, dice loss for small masks."""

import torch
import torch.nn.functional as F
from torch import Tensor


def focal_loss(scores: Tensor, target: Tensor, *, gamma: float = 2.0, alpha: float | None = 0.25) -> Tensor:
    r"""Binary cross-entropy in which easy examples count less, entry by entry.

    .. math:: -\alpha_t (1 - p_t)^\gamma \log p_t, \qquad p_t = \begin{cases} \sigma(s) & y = 1 \\ 1 - \sigma(s) & y = 0 \end{cases}

    `alpha` weighs the positives (1 - alpha the negatives; None for no weights); gamma 0 is cross-entropy.
    Shapes: (...), (...) -> (...). Paper: Lin et al., 2017.

    >>> focal_loss(torch.zeros(1), torch.ones(1), gamma=0.0, alpha=None)
    tensor([0.6931])
    """
    target = target.to(scores.dtype)
    plain = F.binary_cross_entropy_with_logits(scores, target, reduction="none")
    right = torch.exp(-plain)
    loss = (1 - right).pow(gamma) * plain
    return loss if alpha is None else loss * (alpha * target + (1 - alpha) * (1 - target))


def dice_loss(probabilities: Tensor, target: Tensor, *, smooth: float = 1.0) -> Tensor:
    r"""One less the overlap of two masks, the mean over rows and classes.

    .. math:: 1 - \frac{2 \sum_i p_i y_i + s}{\sum_i p_i + \sum_i y_i + s}

    Shapes: (b, classes, h, w) twice -> (). Paper: Milletari et al., 2016.

    >>> dice_loss(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)).item()
    0.0
    """
    p, y = probabilities.flatten(2), target.to(probabilities.dtype).flatten(2)
    return (1 - (2 * (p * y).sum(2) + smooth) / (p.sum(2) + y.sum(2) + smooth)).mean()
