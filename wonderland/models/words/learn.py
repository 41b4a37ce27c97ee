"""Learning vectors of words from sentences, in one call."""

from collections.abc import Sequence

import torch
from torch import Tensor

from wonderland import optim
from wonderland.core import WonderlandError
from wonderland.models.tokens import check_sizes
from wonderland.models.words.glove import GloVe, cooccurrences
from wonderland.models.words.samples import Negatives, counts, pairs, sentences_of, subsample, surroundings
from wonderland.models.words.word2vec import Word2Vec


def learn(
    model: Word2Vec | GloVe,
    sentences: Sequence[Tensor],
    *,
    way: str = "skip-gram",
    window: int = 5,
    negatives: int = 5,
    threshold: float | None = 1e-4,
    epochs: int = 5,
    batch: int = 512,
    rate: float = 0.002,
    seed: int = 0,
) -> list[float]:
    """Train on sentences (tensors of word numbers) with Adam; returns the mean loss of each epoch.

    - `way`: "skip-gram" or "cbow", for Word2Vec and FastText. `negatives`: how many for each pair; 0 for the whole
      likelihood, over the vocabulary or down the model's tree.
    - `threshold`: frequent words are left out by `subsample`; None keeps all. D2L's numbers are the defaults.

    The same seed gives the same vectors. Book: D2L 15.4.

    >>> text = [torch.tensor([0, 1, 2, 3, 4, 5]) for _ in range(20)]
    >>> found = learn(Word2Vec(6, dim=8), text, window=2, threshold=None, epochs=20, rate=0.05)
    >>> found[-1] < found[0]
    True
    """
    if way not in ("skip-gram", "cbow"):
        raise WonderlandError(f"learn has the ways 'skip-gram' and 'cbow', not {way!r}.")
    check_sizes("learn", window=window, epochs=epochs, batch=batch)
    draw = torch.Generator().manual_seed(seed)
    several = sentences_of(sentences, model.vocab, "learn")
    update = optim.Adam(model.parameters(), lr=rate)
    if isinstance(model, GloVe):
        found = cooccurrences(several, model.vocab, window)
        return [
            _epoch(update, lambda rows: model.loss(*(part[rows] for part in found)), len(found.counts), batch, draw)
            for _ in range(epochs)
        ]
    drawer = Negatives(counts(several, model.vocab))
    losses = []
    for _ in range(epochs):
        kept = several if threshold is None else subsample(several, model.vocab, threshold=threshold, generator=draw)
        mask = None
        if way == "skip-gram":
            read, guessed = pairs(kept, window, generator=draw)
        else:
            guessed, read, mask = surroundings(kept, window, generator=draw)

        def loss(rows: Tensor, read=read, guessed=guessed, mask=mask) -> Tensor:
            right = guessed[rows]
            wrong = drawer.draw(len(rows), negatives, generator=draw, but=right.unsqueeze(1)) if negatives else None
            return model.loss(read[rows], right, wrong, None if mask is None else mask[rows])

        losses.append(_epoch(update, loss, len(guessed), batch, draw))
    return losses


def _epoch(update: torch.optim.Optimizer, loss, count: int, batch: int, draw: torch.Generator) -> float:
    total = 0.0
    for rows in torch.randperm(count, generator=draw).split(batch):
        value = loss(rows)
        update.zero_grad()
        value.backward()
        update.step()
        total += value.item() * len(rows)
    return total / count
