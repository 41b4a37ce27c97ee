"""Packed rows through any model, without leaks between the documents of a row."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError


def packed(model: nn.Module | Any, tokens: Tensor, segments: Tensor) -> Tensor:
    """Logits (b, t, vocab) of packed documents, equal to those of each document alone; 0 at padding.

    Each document becomes a row of its own; documents of similar length go through the model together, and the logits are put
    back in place. So documents cannot influence each other through attention, state or positions. Padding is not computed.

    Shapes: tokens (b, t); segments (b, t), 0 for padding, otherwise a number for each document of the row, whose tokens are
    consecutive.

    >>> from wonderland.models.decoder import Decoder
    >>> model = Decoder(vocab=10, dim=16, depth=1)
    >>> packed(model, torch.tensor([[1, 2, 3, 0]]), torch.tensor([[1, 1, 2, 0]])).shape
    torch.Size([1, 4, 10])
    """
    if tokens.dim() != 2 or segments.shape != tokens.shape:
        raise WonderlandError(
            f"packed takes tokens (b, t) and segments of the same shape, not {tuple(tokens.shape)} and {tuple(segments.shape)}."
        )
    starts, lengths = _documents(segments)
    if not len(lengths):
        raise WonderlandError("packed got padding only: there is no document in these rows.")
    flat, logits = tokens.reshape(-1), None
    order = torch.argsort(lengths, descending=True, stable=True)
    for group in _groups(lengths[order].tolist()):
        chosen = order[group]
        longest = int(lengths[chosen].max())
        steps = torch.arange(longest, device=tokens.device)
        mask = steps < lengths[chosen, None]
        index = (starts[chosen, None] + steps).clamp(max=flat.numel() - 1)
        group_logits = model(flat[index], None if bool(mask.all()) else mask)
        if logits is None:
            logits = group_logits.new_zeros(flat.numel(), group_logits.shape[-1])
        logits = logits.index_put((index[mask],), group_logits[mask])
    assert logits is not None
    return logits.unflatten(0, tokens.shape)


def _documents(segments: Tensor) -> tuple[Tensor, Tensor]:
    """The start of each document in the flattened rows, and its length."""
    before = torch.zeros_like(segments)
    before[:, 1:] = segments[:, :-1]
    first = segments != before
    first[:, 0] = True
    starts = first.reshape(-1).nonzero()[:, 0]
    ends = torch.cat([starts[1:], starts.new_tensor([segments.numel()])])
    real = segments.reshape(-1)[starts] > 0
    return starts[real], (ends - starts)[real]


def _groups(lengths: list[int]) -> list[slice]:
    """Slices of lengths in falling order, such that padding is less than a quarter of each row."""
    groups, start = [], 0
    for i, length in enumerate(lengths):
        if length < 0.75 * lengths[start]:
            groups.append(slice(start, i))
            start = i
    return [*groups, slice(start, len(lengths))]
