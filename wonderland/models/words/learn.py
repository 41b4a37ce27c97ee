"""Training of word vectors on sentences, in one call."""

from collections.abc import Sequence

import torch
from torch import Tensor

from wonderland import optim
from wonderland.core import WonderlandError
from wonderland.models.tokens import check_sizes
from wonderland.models.words.glove import GloVe, cooccurrences
from wonderland.models.words.samples import NegativeSampler, context_windows, counts, pairs, sentences_of, subsample
from wonderland.models.words.word2vec import Word2Vec


def learn(
    model: Word2Vec | GloVe,
    sentences: Sequence[Tensor],
    *,
    objective: str = "skip-gram",
    window: int = 5,
    negatives: int = 5,
    threshold: float | None = 1e-4,
    epochs: int = 5,
    batch: int = 512,
    rate: float = 0.002,
    seed: int = 0,
) -> list[float]:
    """Train on sentences (tensors of word ids) with Adam; returns the mean loss of each epoch.

    - `objective`: "skip-gram" or "cbow", for Word2Vec and FastText. `negatives`: negative samples for each pair; 0 for the
      full likelihood, over the vocabulary or the model's Huffman tree.
    - `threshold`: that of `subsample` for frequent words; None keeps all. The defaults are those of D2L.

    The same seed gives the same vectors. Book: D2L 15.4.

    >>> text = [torch.tensor([0, 1, 2, 3, 4, 5]) for _ in range(20)]
    >>> losses = learn(Word2Vec(6, dim=8), text, window=2, threshold=None, epochs=20, rate=0.05)
    >>> losses[-1] < losses[0]
    True
    """
    if objective not in ("skip-gram", "cbow"):
        raise WonderlandError(f"The objective is 'skip-gram' or 'cbow', not {objective!r}.")
    check_sizes("learn", window=window, epochs=epochs, batch=batch)
    generator = torch.Generator().manual_seed(seed)
    sentences = sentences_of(sentences, model.vocab, "learn")
    optimizer = optim.Adam(model.parameters(), lr=rate)
    if isinstance(model, GloVe):
        table = cooccurrences(sentences, model.vocab, window)

        def glove_loss(rows: Tensor) -> Tensor:
            return model.loss(*(column[rows] for column in table))

        return [_epoch(optimizer, glove_loss, len(table.counts), batch, generator) for _ in range(epochs)]
    sampler = NegativeSampler(counts(sentences, model.vocab))
    losses = []
    for _ in range(epochs):
        kept = sentences
        if threshold is not None:
            kept = subsample(sentences, model.vocab, threshold=threshold, generator=generator)
        mask = None
        if objective == "skip-gram":
            inputs, targets = pairs(kept, window, generator=generator)
        else:
            targets, inputs, mask = context_windows(kept, window, generator=generator)

        def loss(rows: Tensor, inputs=inputs, targets=targets, mask=mask) -> Tensor:
            positive, negative = targets[rows], None
            if negatives:
                negative = sampler.draw(len(rows), negatives, generator=generator, exclude=positive.unsqueeze(1))
            return model.loss(inputs[rows], positive, negative, None if mask is None else mask[rows])

        losses.append(_epoch(optimizer, loss, len(targets), batch, generator))
    return losses


def _epoch(optimizer: torch.optim.Optimizer, loss, count: int, batch: int, generator: torch.Generator) -> float:
    total = 0.0
    for rows in torch.randperm(count, generator=generator).split(batch):
        value = loss(rows)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        total += value.item() * len(rows)
    return total / count
