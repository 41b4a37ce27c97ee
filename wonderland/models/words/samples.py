"""Training examples of word vectors: subsampled sentences, pairs and windows of neighbours, negative samples."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.models.tokens import check_range, check_sizes


def sentences_of(sentences: Any, vocab: int, name: str) -> list[Tensor]:
    """Sentences as a list of tensors (n,), from tensors or lists of integers, or from a single tensor."""
    sentences = [sentences] if isinstance(sentences, Tensor) else list(sentences)
    for index, sentence in enumerate(sentences):
        if isinstance(sentence, list | tuple) and all(isinstance(word, int) for word in sentence):
            sentences[index] = sentence = torch.tensor(sentence, dtype=torch.int64)
        if not isinstance(sentence, Tensor) or sentence.dim() != 1 or sentence.is_floating_point():
            raise WonderlandError(f"{name} takes sentences as tensors (n,) or lists of integers.")
        if len(sentence):
            check_range(sentence.unsqueeze(0), vocab)
    if not any(len(sentence) for sentence in sentences):
        raise WonderlandError(f"{name} got sentences without any word.")
    return [sentence.long() for sentence in sentences]


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
    r"""Remove frequent words at random, which carry little information about their neighbours.

    .. math:: P(\text{removed}) = \max\bigl(1 - \sqrt{t / f(w)},\, 0\bigr)

    f is the relative frequency of a word, t the threshold. Book: D2L 15.3. Paper: Mikolov et al., 2013.

    >>> text = [torch.tensor([0] * 98 + [1, 2])]
    >>> kept = subsample(text, 3, threshold=0.01, generator=torch.Generator().manual_seed(0))[0]
    >>> kept.bincount()
    tensor([6, 1, 1])
    """
    if not threshold > 0:
        raise WonderlandError(f"subsample takes a threshold above 0, not {threshold}.")
    sentences = sentences_of(sentences, vocab, "subsample")
    occurrences = counts(sentences, vocab).double()
    keep = (threshold * occurrences.sum() / occurrences.clamp(min=1)).sqrt()
    return [
        sentence[torch.rand(len(sentence), dtype=torch.float64, generator=generator) < keep[sentence]]
        for sentence in sentences
    ]


def pairs(
    sentences: Sequence[Tensor], window: int, *, shrink: bool = True, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Skip-gram examples, every word with each of its neighbours: centers (n,) and contexts (n,).

    With `shrink` each center draws its own window from 1 to `window`, so that near words count more, as in word2vec.

    >>> pairs([torch.tensor([5, 6, 7])], 1)
    (tensor([6, 7, 5, 6]), tensor([5, 6, 6, 7]))
    """
    check_sizes("pairs", window=window)
    centers, contexts = [], []
    for sentence in sentences:
        sizes = _window_sizes(len(sentence), window, shrink, generator)
        for distance in range(1, min(window, len(sentence) - 1) + 1):
            for center, context, size in (
                (sentence[distance:], sentence[:-distance], sizes[distance:]),
                (sentence[:-distance], sentence[distance:], sizes[:-distance]),
            ):
                centers.append(center[size >= distance])
                contexts.append(context[size >= distance])
    if not centers:
        raise WonderlandError("pairs got no sentence of at least two words.")
    return torch.cat(centers), torch.cat(contexts)


def context_windows(
    sentences: Sequence[Tensor], window: int, *, shrink: bool = True, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """CBOW examples, every word with all its neighbours: centers (n,), contexts (n, 2 window), and their mask.

    >>> context_windows([torch.tensor([5, 6, 7])], 1)
    (tensor([5, 6, 7]), tensor([[0, 6],
            [5, 7],
            [6, 0]]), tensor([[False,  True],
            [ True,  True],
            [ True, False]]))
    """
    check_sizes("context_windows", window=window)
    offsets = torch.cat([torch.arange(-window, 0), torch.arange(1, window + 1)])
    examples = []
    for sentence in sentences:
        if len(sentence) < 2:
            continue
        index = torch.arange(len(sentence)).unsqueeze(1) + offsets
        sizes = _window_sizes(len(sentence), window, shrink, generator).unsqueeze(1)
        mask = (index >= 0) & (index < len(sentence)) & (offsets.abs() <= sizes)
        examples.append((sentence, sentence[index.clamp(0, len(sentence) - 1)].masked_fill(~mask, 0), mask))
    if not examples:
        raise WonderlandError("context_windows got no sentence of at least two words.")
    centers, contexts, mask = (torch.cat(column) for column in zip(*examples, strict=True))
    return centers, contexts, mask


class NegativeSampler:
    r"""Negative samples: words drawn with probability proportional to a power of their counts.

    .. math:: P(w) \propto c(w)^{3/4}

    Book: D2L 15.3. Paper: Mikolov et al., 2013.

    >>> NegativeSampler(torch.tensor([0, 3, 0])).draw(2, 3).tolist()
    [[1, 1, 1], [1, 1, 1]]
    """

    def __init__(self, counts: Tensor, *, power: float = 0.75):
        weights = counts.double() ** power * (counts > 0)
        if not weights.sum() > 0:
            raise WonderlandError("NegativeSampler needs at least one count above 0.")
        self.weights = weights

    def draw(self, *shape: int, generator: torch.Generator | None = None, exclude: Tensor | None = None) -> Tensor:
        """Words of a shape (n, m); row i has none of the words in row i of `exclude` (n, k)."""
        total = 1
        for size in shape:
            total *= size
        drawn = torch.multinomial(self.weights, total, replacement=True, generator=generator).view(shape)
        if exclude is None:
            return drawn
        if not (self.weights > 0).sum() > exclude.shape[1]:
            raise WonderlandError("There are not enough different words to draw one that is not excluded.")
        while (excluded := (drawn.unsqueeze(2) == exclude.unsqueeze(1)).any(2)).any():
            drawn[excluded] = torch.multinomial(
                self.weights, int(excluded.sum()), replacement=True, generator=generator
            )
        return drawn


def _window_sizes(length: int, window: int, shrink: bool, generator: torch.Generator | None) -> Tensor:
    return torch.randint(1, window + 1, (length,), generator=generator) if shrink else torch.full((length,), window)
