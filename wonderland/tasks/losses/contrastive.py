"""Contrastive loss: two views of one example should be closer to each other than to the rest of the batch."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks.losses.convention import check_mask, check_number, check_pair, reduce_losses


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
    r"""InfoNCE: cross-entropy of the matching row among all rows of the batch.

    .. math:: l_i = -\log \frac{\exp(\cos(a_i, b_i) / \tau)}{\sum_j \exp(\cos(a_i, b_j) / \tau)}

    `symmetric` averages with the same loss from target to prediction, as CLIP does. Masked rows are neither queries nor
    candidates. log n minus the loss is a lower bound on the mutual information of the two views.

    Shapes: both (n, d); the mask and weight (n,). Papers: van den Oord et al., 2018; Radford et al., 2021.

    >>> contrastive(torch.eye(4), torch.eye(4), temperature=0.01)
    tensor(0.)
    """
    temperature = check_number("contrastive", "temperature", temperature, open=True)
    a, b = check_pair("contrastive", prediction, target, mask)
    if a.dim() != 2:
        raise WonderlandError(f"contrastive takes a prediction and a target (n, d), not of shape {tuple(a.shape)}.")
    unmasked = None if mask is None else check_mask("contrastive", mask, a.shape[:1])
    logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T / temperature
    losses = _cross_entropy_of_diagonal(logits, unmasked)
    if symmetric:
        losses = (losses + _cross_entropy_of_diagonal(logits.T, unmasked)) / 2
    return reduce_losses("contrastive", losses, unmasked, weight, reduction)


def _cross_entropy_of_diagonal(logits: Tensor, unmasked: Tensor | None) -> Tensor:
    """Minus the log-probability of the matching row (the diagonal) among unmasked rows."""
    if unmasked is not None:
        # A large negative number instead of -inf keeps masked rows and their gradients finite.
        logits = logits.masked_fill(~unmasked, torch.finfo(logits.dtype).min / 4)
    return -logits.log_softmax(-1).diagonal()
