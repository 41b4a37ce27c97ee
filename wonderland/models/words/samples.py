"""From sentences to examples: rare words kept, neighbours paired, and words that are not there drawn beside them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.models.tokens import check_range, check_sizes


def sentences_of(given: Any, vocab: int, name: str) -> list[Tensor]:
    """Sentences as a list of tensors (n,), from tensors or lists of whole numbers; a single tensor may come alone."""
    several = [given] if isinstance(given, Tensor) else list(given)
    for place, sentence in enumerate(several):
        if isinstance(sentence, list | tuple) and all(isinstance(word, int) for word in sentence):
            several[place] = sentence = torch.tensor(sentence, dtype=torch.int64)
        if not isinstance(sentence, Tensor) or sentence.dim() != 1 or sentence.is_floating_point():
            raise WonderlandError(f"{name} takes sentences as tensors (n,) or lists of whole numbers.")
        if len(sentence):
            check_range(sentence.unsqueeze(0), vocab)
    if not any(len(sentence) for sentence in several):
        raise WonderlandError(f"{name} got no word to read.")
    return [sentence.long() for sentence in several]


def counts(sentences: Sequence[Tensor] | Tensor, vocab: int) -> Tensor:
    """How often each word occurs: (vocab,).

    >>> counts([torch.tensor([0, 2, 2])], 4)
    tensor([1, 0, 2, 0])
    """
    return torch.cat(sentences_of(sentences, vocab, "counts")).bincount(minlength=vocab)


def subsample(
    sentences: Sequence[Tensor],
    vocab: int,
    *,
    threshold: float = 1e-4,
    generator: torch.Generator | None = None,
) -> list[Tensor]:
    r"""Leave out frequent words at random: they say little about their neighbours.

    .. math:: P(\text{left out}) = \max\bigl(1 - \sqrt{t / f(w)},\, 0\bigr)

    f is a word's share of the text, t the threshold. Book: D2L 15.3. Paper: Mikolov et al., 2013.

    >>> text = [torch.tensor([0] * 98 + [1, 2])]
    >>> kept = subsample(text, 3, threshold=0.01, generator=torch.Generator().manual_seed(0))[0]
    >>> kept.bincount()
    tensor([6, 1, 1])
    """
    if not threshold > 0:
        raise WonderlandError(f"subsample takes a threshold above 0, not {threshold}.")
    several = sentences_of(sentences, vocab, "subsample")
    share = counts(several, vocab).double()
    keep = (threshold * share.sum() / share.clamp(min=1)).sqrt()
    return [
        sentence[torch.rand(len(sentence), dtype=torch.float64, generator=generator) < keep[sentence]]
        for sentence in several
    ]


def pairs(
    sentences: Sequence[Tensor], window: int, *, shrink: bool = True, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Every word with every word around it: centers (n,) and contexts (n,).

    With `shrink` each center draws its own reach from 1 to `window`, so that near words count more, as in word2vec.

    >>> pairs([torch.tensor([5, 6, 7])], 1)
    (tensor([6, 7, 5, 6]), tensor([5, 6, 6, 7]))
    """
    check_sizes("pairs", window=window)
    before, after = [], []
    for sentence in sentences:
        reach = _reach(len(sentence), window, shrink, generator)
        for apart in range(1, min(window, len(sentence) - 1) + 1):
            for center, context, own in (
                (sentence[apart:], sentence[:-apart], reach[apart:]),
                (sentence[:-apart], sentence[apart:], reach[:-apart]),
            ):
                before.append(center[own >= apart])
                after.append(context[own >= apart])
    if not before:
        raise WonderlandError("pairs got no sentence of at least two words.")
    return torch.cat(before), torch.cat(after)


def surroundings(
    sentences: Sequence[Tensor], window: int, *, shrink: bool = True, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Every word with all that stands around it: centers (n,), contexts (n, 2 window), and which of these are real.

    >>> surroundings([torch.tensor([5, 6, 7])], 1)
    (tensor([5, 6, 7]), tensor([[0, 6],
            [5, 7],
            [6, 0]]), tensor([[False,  True],
            [ True,  True],
            [ True, False]]))
    """
    check_sizes("surroundings", window=window)
    offsets = torch.cat([torch.arange(-window, 0), torch.arange(1, window + 1)])
    found = []
    for sentence in sentences:
        if len(sentence) < 2:
            continue
        at = torch.arange(len(sentence)).unsqueeze(1) + offsets
        reach = _reach(len(sentence), window, shrink, generator).unsqueeze(1)
        real = (at >= 0) & (at < len(sentence)) & (offsets.abs() <= reach)
        found.append((sentence, sentence[at.clamp(0, len(sentence) - 1)].masked_fill(~real, 0), real))
    if not found:
        raise WonderlandError("surroundings got no sentence of at least two words.")
    centers, contexts, real = (torch.cat(column) for column in zip(*found, strict=True))
    return centers, contexts, real


class Negatives:
    r"""Words drawn by a power of their counts, to stand beside one that is right.

    .. math:: P(w) \propto c(w)^{3/4}

    Book: D2L 15.3. Paper: Mikolov et al., 2013.

    >>> Negatives(torch.tensor([0, 3, 0])).draw(2, 3).tolist()
    [[1, 1, 1], [1, 1, 1]]
    """

    def __init__(self, counts: Tensor, *, power: float = 0.75):
        weights = counts.double() ** power * (counts > 0)
        if not weights.sum() > 0:
            raise WonderlandError("Negatives are drawn by counts, and all of them are 0.")
        self.weights = weights

    def draw(self, *shape: int, generator: torch.Generator | None = None, but: Tensor | None = None) -> Tensor:
        """Words of a shape (n, m); none of those of a row of `but` (n, k), where that is given."""
        total = 1
        for size in shape:
            total *= size
        drawn = torch.multinomial(self.weights, total, replacement=True, generator=generator).view(shape)
        if but is None:
            return drawn
        if not (self.weights > 0).sum() > but.shape[1]:
            raise WonderlandError("There are not enough different words to draw one that is not in its row.")
        while (bad := (drawn.unsqueeze(2) == but.unsqueeze(1)).any(2)).any():
            drawn[bad] = torch.multinomial(self.weights, int(bad.sum()), replacement=True, generator=generator)
        return drawn


def _reach(length: int, window: int, shrink: bool, generator: torch.Generator | None) -> Tensor:
    return torch.randint(1, window + 1, (length,), generator=generator) if shrink else torch.full((length,), window)
