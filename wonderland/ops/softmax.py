"""Masked softmax: a softmax over the entries where a mask is True, 0 elsewhere."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wonderland.core import WonderlandError


def masked_softmax(scores: Float[Tensor, "..."], mask: Bool[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    r"""Softmax over the entries where `mask` is True; the others get 0, and so does a row without any.

    .. math::
        \alpha_j = \frac{m_j e^{s_j}}{\sum_l m_l e^{s_l}}, \qquad 0 / 0 = 0

    Scores under the mask are never read: they may hold NaN. Gradients are finite everywhere, 0 in rows without entries.
    `mask` broadcasts to `scores`.

    Book: Alice 11.1; D2L 11.3.

    >>> masked_softmax(torch.zeros(2, 3), torch.tensor([[True, True, False], [False, False, False]]))
    tensor([[0.5000, 0.5000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        had = scores.dtype if isinstance(scores, Tensor) else f"a {type(scores).__name__}"
        raise WonderlandError(f"masked_softmax takes floating point scores, not {had}.")
    fits = isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.dim() <= scores.dim()
    if not fits or not all(
        own in (1, size) for own, size in zip(mask.shape, scores.shape[scores.dim() - mask.dim() :], strict=True)
    ):
        had = f"{mask.dtype} {tuple(mask.shape)}" if isinstance(mask, Tensor) else f"a {type(mask).__name__}"
        raise WonderlandError(
            f"masked_softmax takes a mask of booleans that broadcasts to the scores {tuple(scores.shape)}, not {had}."
        )
    # Filled with a finite number where a row has no entries: a softmax over -inf alone would be NaN, and so its gradient.
    fill = torch.where(mask.any(dim, keepdim=True), -math.inf, 0.0).to(scores.dtype)
    return torch.where(mask, torch.where(mask, scores, fill).softmax(dim), 0.0)


def reference(scores: Float[Tensor, "..."], mask: Bool[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    """The equation, written for reading."""
    scores = torch.where(mask, scores, 0.0)
    highest = torch.where(mask, scores, scores.min()).amax(dim, keepdim=True)
    weights = mask * (scores - highest).exp()
    total = weights.sum(dim, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0)


def prefix_mask(lengths: Int[Tensor, "*b"], size: int) -> Bool[Tensor, "*b t"]:
    """True for the first `lengths` of `size` entries: the mask of sequences padded at their right end.

    >>> prefix_mask(torch.tensor([1, 3]), 3)
    tensor([[ True, False, False],
            [ True,  True,  True]])
    """
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)
