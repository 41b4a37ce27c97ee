"""GloVe: word vectors whose products are the logarithms of co-occurrence counts."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.tokens import check_sizes, look_up
from wonderland.models.words.samples import sentences_of
from wonderland.nn.contract.arguments import Checked


class Cooccurrences(NamedTuple):
    """Pairs of words and their co-occurrence counts, each (n,)."""

    words: Tensor
    contexts: Tensor
    counts: Tensor


def cooccurrences(sentences: Sequence[Tensor], vocab: int, window: int = 10) -> Cooccurrences:
    r"""How often each pair of words occurs within `window` of each other; at distance d an occurrence counts 1 / d.

    Both orders of a pair are listed. Book: D2L 15.5. Paper: Pennington et al., 2014.

    >>> cooccurrences([torch.tensor([0, 1, 0])], vocab=2, window=2)
    Cooccurrences(words=tensor([0, 0, 1]), contexts=tensor([0, 1, 0]), counts=tensor([1., 2., 2.]))
    """
    check_sizes("cooccurrences", window=window)
    codes, weights = [], []
    for sentence in sentences_of(sentences, vocab, "cooccurrences"):
        for distance in range(1, min(window, len(sentence) - 1) + 1):
            a, b = sentence[:-distance], sentence[distance:]
            codes += [a * vocab + b, b * vocab + a]
            weights += [torch.full((2 * len(a),), 1 / distance, dtype=torch.float64)]
    if not codes:
        raise WonderlandError("cooccurrences got no sentence of at least two words.")
    pairs, inverse = torch.cat(codes).unique(return_inverse=True)
    total = torch.zeros(len(pairs), dtype=torch.float64).index_add_(0, inverse, torch.cat(weights))
    return Cooccurrences(pairs // vocab, pairs % vocab, total.float())


@part
class GloVe(Checked, nn.Module):
    r"""Word vectors fitted to the logarithms of co-occurrence counts x by weighted least squares.

    .. math::
        \sum_{ij} h(x_{ij}) \bigl(u_j^\top v_i + b_i + c_j - \log x_{ij}\bigr)^2, \qquad
        h(x) = \min\bigl((x / x_0)^{\alpha},\, 1\bigr)

    x0 is `full` and alpha is `power`. The two vectors of a word play the same role, so `vectors` is their sum. Shapes: words (n,), contexts (n,) -> (n,).
    Book: D2L 15.5. Paper: Pennington et al., 2014.

    >>> model = GloVe(vocab=10, dim=4)
    >>> model(torch.tensor([1, 2]), torch.tensor([3, 4])).shape
    torch.Size([2])
    """

    no_decay = frozenset({"bias", "context_bias"})

    def __init__(self, vocab: int, dim: int = 100, *, full: float | int = 100.0, power: float | int = 0.75):
        super().__init__()
        check_sizes("GloVe", vocab=vocab, dim=dim)
        if not full > 0 or not power >= 0:
            raise WonderlandError(
                f"GloVe takes full, the count from which the weight is 1, above 0 and a power from 0, not {full} and {power}."
            )
        self.vocab, self.dim, self.full, self.power = vocab, dim, float(full), float(power)
        self.word, self.context = nn.Embedding(vocab, dim), nn.Embedding(vocab, dim)
        self.bias, self.context_bias = nn.Parameter(torch.zeros(vocab)), nn.Parameter(torch.zeros(vocab))
        for table in (self.word, self.context):
            nn.init.uniform_(table.weight, -0.5 / dim, 0.5 / dim)

    @property
    def vectors(self) -> Tensor:
        """The vector of each word: (vocab, dim)."""
        return (self.word.weight + self.context.weight).detach()

    def forward(self, words: Tensor, contexts: Tensor) -> Tensor:
        """The predicted logarithm of the count of each pair: (n,)."""
        v = look_up(words.unsqueeze(1), self.word.weight).squeeze(1)
        u = look_up(contexts.unsqueeze(1), self.context.weight).squeeze(1)
        return (v * u).sum(1) + self.bias[words] + self.context_bias[contexts]

    def loss(self, words: Tensor, contexts: Tensor, counts: Tensor) -> Tensor:
        """The mean of the weighted squared errors."""
        if not (counts > 0).all():
            raise WonderlandError("GloVe takes counts above 0: leave out pairs that never occur together.")
        weight = (counts / self.full).pow(self.power).clamp(max=1)
        return (weight * (self(words, contexts) - counts.log()).square()).mean()
