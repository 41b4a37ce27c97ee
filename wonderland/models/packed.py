"""Packed rows through any model: each document goes its own way, whatever mixes tokens inside."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError


def packed(model: nn.Module | Any, tokens: Tensor, segments: Tensor) -> Tensor:
    """Logits (b, t, vocab) of packed documents, as if each had been given to the model alone; 0 at padding.

    Each document of a row becomes a row of its own, documents of like length go through the model together, and what comes
    out is put back in its place. So nothing of a document can reach its neighbours: not by attention, not by a state, not by
    positions, which begin anew. Padding is never computed.

    Shapes: tokens (b, t); segments (b, t), 0 for padding, else a number that each document of a row has for itself, its
    tokens side by side.

    >>> from wonderland.models.decoder import Decoder
    >>> model = Decoder(vocab=10, dim=16, depth=1)
    >>> packed(model, torch.tensor([[1, 2, 3, 0]]), torch.tensor([[1, 1, 2, 0]])).shape
    torch.Size([1, 4, 10])
    """
    if tokens.dim() != 2 or segments.shape != tokens.shape:
        raise WonderlandError(
            f"packed takes tokens (b, t) and segments of the same shape, not {tuple(tokens.shape)} and {tuple(segments.shape)}."
        )
    places, lengths = _documents(segments)
    if not len(lengths):
        raise WonderlandError("packed got padding only: there is no document in these rows.")
    flat, out = tokens.reshape(-1), None
    order = torch.argsort(lengths, descending=True, stable=True)
    for group in _groups(lengths[order].tolist()):
        chosen = order[group]
        longest = int(lengths[chosen].max())
        steps = torch.arange(longest, device=tokens.device)
        mask = steps < lengths[chosen, None]
        index = (places[chosen, None] + steps).clamp(max=flat.numel() - 1)
        whole = bool(mask.all())
        found = model(flat[index], None if whole else mask)
        if out is None:
            out = found.new_zeros(flat.numel(), found.shape[-1])
        out = out.index_put((index[mask],), found[mask])
    assert out is not None
    return out.unflatten(0, tokens.shape)


def _documents(segments: Tensor) -> tuple[Tensor, Tensor]:
    """Where each document begins in the flattened rows, and how long it is."""
    before = torch.zeros_like(segments)
    before[:, 1:] = segments[:, :-1]
    first = segments != before
    first[:, 0] = True
    begins = first.reshape(-1).nonzero()[:, 0]
    ends = torch.cat([begins[1:], begins.new_tensor([segments.numel()])])
    real = segments.reshape(-1)[begins] > 0
    return begins[real], (ends - begins)[real]


def _groups(lengths: list[int]) -> list[slice]:
    """Neighbours in order of length whose padding stays below a quarter."""
    groups, start = [], 0
    for i, length in enumerate(lengths):
        if length < 0.75 * lengths[start]:
            groups.append(slice(start, i))
            start = i
    return [*groups, slice(start, len(lengths))]
