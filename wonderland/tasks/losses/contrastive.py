"""Contrast: two views of one thing are to be closer to each other than to anything else in the batch."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks.losses.convention import mask_of, meet, settle, strength


def contrastive(
    prediction: Any,
    target: Any,
    *,
    temperature: float | int = 0.1,
    symmetric: bool = False,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""InfoNCE: each row must find its own partner among all.

    .. math:: l_i = -\log \frac{\exp(\cos(a_i, b_i) / \tau)}{\sum_j \exp(\cos(a_i, b_j) / \tau)}

    `symmetric` takes the mean with the rows of the target looking for theirs, as CLIP does. Rows that the mask hides are
    neither asked nor offered. Its value is never below log n less the information that the two views share.

    Shapes: both (n, d); the mask and weight (n,). Papers: van den Oord et al., 2018; Radford et al., 2021.

    >>> contrastive(torch.eye(4), torch.eye(4), temperature=0.01)
    tensor(0.)
    """
    temperature = strength("contrastive", "temperature", temperature, open=True)
    a, b = meet("contrastive", prediction, target, mask)
    if a.dim() != 2:
        raise WonderlandError(f"contrastive takes a prediction and a target (n, d), not of shape {tuple(a.shape)}.")
    shown = None if mask is None else mask_of("contrastive", mask, a.shape[:1])
    logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T / temperature
    own = _surprise(logits, shown)
    if symmetric:
        own = (own + _surprise(logits.T, shown)) / 2
    return settle("contrastive", own, shown, weight, reduction)


def _surprise(logits: Tensor, shown: Tensor | None) -> Tensor:
    """Minus the log-probability of the partner, on the diagonal, among those that are shown."""
    if shown is not None:
        # A large negative number and no infinity: rows that are hidden themselves stay finite, and so do gradients.
        logits = logits.masked_fill(~shown, torch.finfo(logits.dtype).min / 4)
    return -logits.log_softmax(-1).diagonal()
