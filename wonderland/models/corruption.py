"""Corruption of texts for denoising objectives: masked tokens (BERT) and masked spans (T5)."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError

IGNORED = -100  # the label of tokens that are not predicted, which losses skip


def mask_tokens(
    tokens: Tensor,
    *,
    mask_token: int,
    vocab: int,
    special: Iterable[int] = (),
    probability: float = 0.15,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """BERT's masking: tokens (b, t) -> masked tokens (b, t) and labels (b, t), -100 where nothing is to be predicted.

    Each token is selected with a probability, `special` ones (padding, separators) never. Of the selected ones 80 % become the
    mask token, 10 % a random token, and 10 % stay, because unmasked tokens have to be predicted after pretraining too.
    Book: D2L 15.8. Paper: Devlin et al., 2019.

    >>> masked, labels = mask_tokens(torch.full((1, 6), 5), mask_token=9, vocab=10, probability=1.0)
    >>> labels
    tensor([[5, 5, 5, 5, 5, 5]])
    """
    if tokens.is_floating_point() or tokens.dim() != 2:
        raise WonderlandError(f"mask_tokens takes tokens (batch, time) as whole numbers, not {tuple(tokens.shape)}.")
    if not 0 <= probability <= 1 or not 0 <= mask_token < vocab:
        raise WonderlandError(
            f"mask_tokens takes a probability from 0 to 1 and a mask token below {vocab}, not {probability} and {mask_token}."
        )
    draw = torch.rand((2, *tokens.shape), generator=generator)
    other = torch.randint(vocab, tokens.shape, generator=generator, dtype=tokens.dtype)
    selected = draw[0] < probability
    for token in special:
        selected &= tokens != token
    masked = torch.where(selected & (draw[1] < 0.8), torch.full_like(tokens, mask_token), tokens)
    masked = torch.where(selected & (draw[1] >= 0.8) & (draw[1] < 0.9), other, masked)
    return masked, torch.where(selected, tokens, torch.full_like(tokens, IGNORED))


def mask_spans(
    tokens: list[int],
    *,
    sentinels: list[int],
    probability: float = 0.15,
    mean_length: float = 3.0,
    generator: torch.Generator | None = None,
) -> tuple[list[int], list[int]]:
    """T5's span corruption of one text: source and target of an encoder-decoder.

    A share `probability` of the tokens is removed, in spans of `mean_length` tokens on average. In the source each span is
    replaced by a sentinel; the target lists each sentinel with its tokens, and one more sentinel at the end. Book: D2L 11.9. Paper: Raffel et al., 2020.
    """
    n = len(tokens)
    if n < 2:
        raise WonderlandError(f"A text of {n} tokens has no span to mask: give at least 2.")
    if not 0 < probability < 1 or not mean_length >= 1:
        raise WonderlandError(
            f"mask_spans takes a probability between 0 and 1 and a mean length of at least 1, not {probability} and {mean_length}."
        )
    removed = min(max(round(n * probability), 1), n - 1)
    count = min(max(round(removed / mean_length), 1), removed, n - removed)
    gaps, lengths = _partition(n - removed, count, generator), _partition(removed, count, generator)
    spans, position = [], 0
    for gap, length in zip(gaps, lengths, strict=True):
        spans.append((position + gap, position + gap + length))
        position += gap + length
    return replace_spans(tokens, spans, sentinels=sentinels)


def replace_spans(
    tokens: list[Any], spans: list[tuple[int, int]], *, sentinels: list[Any]
) -> tuple[list[Any], list[Any]]:
    """A text with each span [start, end) replaced by a sentinel, and the sentinels followed by the tokens of their spans.

    >>> replace_spans([1, 2, 3, 4, 5], [(1, 3), (4, 5)], sentinels=[90, 91, 92])
    ([1, 90, 4, 91], [90, 2, 3, 91, 5, 92])
    """
    if len(spans) >= len(sentinels):
        raise WonderlandError(
            f"{len(spans)} spans need {len(spans) + 1} sentinels, one each and one at the end, but there are "
            f"{len(sentinels)}: mask fewer or longer spans, or shorten the text."
        )
    source: list[Any] = []
    target: list[Any] = []
    position = 0
    for (start, end), sentinel in zip(spans, sentinels, strict=False):
        if not position <= start < end <= len(tokens):
            raise WonderlandError(f"The span from {start} up to {end} is empty, out of order or beyond the text.")
        source += [*tokens[position:start], sentinel]
        target += [sentinel, *tokens[start:end]]
        position = end
    return source + tokens[position:], [*target, sentinels[len(spans)]]


def _partition(total: int, count: int, generator: torch.Generator | None) -> list[int]:
    """`total` as a sum of `count` integers of at least 1, uniformly among all such sums."""
    cuts = torch.randperm(total - 1, generator=generator)[: count - 1].sort().values + 1
    edges = [0, *cuts.tolist(), total]
    return [b - a for a, b in pairwise(edges)]
