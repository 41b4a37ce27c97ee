"""Texts with holes: what BERT and T5 learn to fill."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError

IGNORED = -100  # the label of tokens that are not asked for, which losses skip


def hide_tokens(
    tokens: Tensor,
    *,
    mask_token: int,
    vocab: int,
    special: Iterable[int] = (),
    chance: float = 0.15,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Tokens with some hidden as BERT hides them, and what stood there: (b, t) -> (b, t), (b, t) with -100 elsewhere.

    Each token is asked for with probability `chance`, `special` ones (padding, separators) never. Of those asked for, 80 %
    become the mask token, 10 % a random token, and 10 % stay, so that a model cannot trust what it sees.
    Book: D2L 15.8. Paper: Devlin et al., 2019.

    >>> hidden, labels = hide_tokens(torch.full((1, 6), 5), mask_token=9, vocab=10, chance=1.0)
    >>> labels
    tensor([[5, 5, 5, 5, 5, 5]])
    """
    if tokens.is_floating_point() or tokens.dim() != 2:
        raise WonderlandError(f"hide_tokens takes tokens (batch, time) as whole numbers, not {tuple(tokens.shape)}.")
    if not 0 <= chance <= 1 or not 0 <= mask_token < vocab:
        raise WonderlandError(
            f"hide_tokens takes a chance of 0 to 1 and a mask token of the vocabulary, not {chance} and {mask_token} "
            f"of {vocab}."
        )
    draw = torch.rand((2, *tokens.shape), generator=generator)
    other = torch.randint(vocab, tokens.shape, generator=generator, dtype=tokens.dtype)
    asked = draw[0] < chance
    for one in special:
        asked &= tokens != one
    hidden = torch.where(asked & (draw[1] < 0.8), torch.full_like(tokens, mask_token), tokens)
    hidden = torch.where(asked & (draw[1] >= 0.8) & (draw[1] < 0.9), other, hidden)
    return hidden, torch.where(asked, tokens, torch.full_like(tokens, IGNORED))


def hide_spans(
    tokens: list[int],
    *,
    sentinels: list[int],
    chance: float = 0.15,
    mean_length: float = 3.0,
    generator: torch.Generator | None = None,
) -> tuple[list[int], list[int]]:
    """A text with spans taken out as T5 takes them, and the spans: source and target of an encoder-decoder.

    `chance` of the tokens go, in spans of `mean_length` tokens on average; each leaves a sentinel behind, and the target
    says for each sentinel what was there, closed by one more. Book: D2L 11.9. Paper: Raffel et al., 2020.
    """
    n = len(tokens)
    if n < 2:
        raise WonderlandError(f"A text of {n} tokens has no span to hide: give at least 2.")
    if not 0 < chance < 1 or not mean_length >= 1:
        raise WonderlandError(
            f"hide_spans takes a chance between 0 and 1 and a mean length of at least 1, not {chance} and {mean_length}."
        )
    gone = min(max(round(n * chance), 1), n - 1)
    count = min(max(round(gone / mean_length), 1), gone, n - gone)
    kept, lost = _parts(n - gone, count, generator), _parts(gone, count, generator)
    spans, at = [], 0
    for stay, go in zip(kept, lost, strict=True):
        spans.append((at + stay, at + stay + go))
        at += stay + go
    return take_spans(tokens, spans, sentinels=sentinels)


def take_spans(tokens: list[Any], spans: list[tuple[int, int]], *, sentinels: list[Any]) -> tuple[list[Any], list[Any]]:
    """A text without the spans (from, up to), a sentinel in the place of each, and what they held.

    >>> take_spans([1, 2, 3, 4, 5], [(1, 3), (4, 5)], sentinels=[90, 91, 92])
    ([1, 90, 4, 91], [90, 2, 3, 91, 5, 92])
    """
    if len(spans) >= len(sentinels):
        raise WonderlandError(
            f"{len(spans)} spans need {len(spans) + 1} sentinels, one each and one to close, and there are "
            f"{len(sentinels)}: hide fewer or longer spans, or cut the text."
        )
    source: list[Any] = []
    target: list[Any] = []
    at = 0
    for (start, end), sentinel in zip(spans, sentinels, strict=False):
        if not at <= start < end <= len(tokens):
            raise WonderlandError(f"The span from {start} up to {end} is empty, out of order or beyond the text.")
        source += [*tokens[at:start], sentinel]
        target += [sentinel, *tokens[start:end]]
        at = end
    return source + tokens[at:], [*target, sentinels[len(spans)]]


def _parts(total: int, count: int, generator: torch.Generator | None) -> list[int]:
    """`total` cut into `count` pieces of at least 1, all ways equally likely."""
    cuts = torch.randperm(total - 1, generator=generator)[: count - 1].sort().values + 1
    edges = [0, *cuts.tolist(), total]
    return [b - a for a, b in pairwise(edges)]
