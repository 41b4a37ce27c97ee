"""GloVe: how often words stand together, as products of their vectors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.tokens import check_sizes, look_up
from wonderland.models.words.samples import sentences_of
from wonderland.nn.contract.arguments import Checked


class Cooccurrences(NamedTuple):
    """Pairs of words that stand together and how often, each (n,); near neighbours count more."""

    words: Tensor
    contexts: Tensor
    counts: Tensor


def cooccurrences(sentences: Sequence[Tensor], vocab: int, window: int = 10) -> Cooccurrences:
    r"""How often each pair of words stands within `window` of each other, a pair d apart counting 1 / d.

    Both orders are listed. Book: D2L 15.5. Paper: Pennington et al., 2014.

    >>> cooccurrences([torch.tensor([0, 1, 0])], vocab=2, window=2)
    Cooccurrences(words=tensor([0, 0, 1]), contexts=tensor([0, 1, 0]), counts=tensor([1., 2., 2.]))
    """
    check_sizes("cooccurrences", window=window)
    codes, weights = [], []
    for sentence in sentences_of(sentences, vocab, "cooccurrences"):
        for apart in range(1, min(window, len(sentence) - 1) + 1):
            a, b = sentence[:-apart], sentence[apart:]
            codes += [a * vocab + b, b * vocab + a]
            weights += [torch.full((2 * len(a),), 1 / apart, dtype=torch.float64)]
    if not codes:
        raise WonderlandError("cooccurrences got no sentence of at least two words.")
    found, which = torch.cat(codes).unique(return_inverse=True)
    total = torch.zeros(len(found), dtype=torch.float64).index_add_(0, which, torch.cat(weights))
    return Cooccurrences(found // vocab, found % vocab, total.float())


@part
class GloVe(Checked, nn.Module):
    r"""Vectors whose products are the logarithms of co-occurrence counts x, by weighted least squares.

    .. math::
        \sum_{ij} h(x_{ij}) \bigl(u_j^\top v_i + b_i + c_j - \log x_{ij}\bigr)^2, \qquad
        h(x) = \min\bigl((x / x_0)^{\alpha},\, 1\bigr)

    Both vectors of a word mean the same, so `vectors` is their sum. Shapes: words (n,), contexts (n,) -> (n,).
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
                f"GloVe takes a count above 0 that weighs fully and a power from 0, not {full}, {power}."
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
        """The logarithm of a count, as the model has it: (n,)."""
        v = look_up(words.unsqueeze(1), self.word.weight).squeeze(1)
        u = look_up(contexts.unsqueeze(1), self.context.weight).squeeze(1)
        return (v * u).sum(1) + self.bias[words] + self.context_bias[contexts]

    def loss(self, words: Tensor, contexts: Tensor, counts: Tensor) -> Tensor:
        """The weighted squares, their mean over rows."""
        if not (counts > 0).all():
            raise WonderlandError("GloVe learns from counts above 0: pairs that never stand together are left out.")
        weight = (counts / self.full).pow(self.power).clamp(max=1)
        return (weight * (self(words, contexts) - counts.log()).square()).mean()
