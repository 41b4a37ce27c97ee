"""Decomposable attention: two sentences compared token by token, whatever their order."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.tokens import (
    check_classes,
    check_mask,
    check_pad,
    check_sizes,
    check_tokens,
    look_up,
    real_tokens,
)
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.arguments import Checked
from wonderland.ops.softmax import masked_softmax


@part
class DecomposableAttention(Checked, nn.Module):
    r"""A classifier of pairs of sentences, such as entailment: attend, compare, aggregate.

    .. math::
        e_{ij} = F(a_i)^\top F(b_j), \qquad \beta_i = \sum_j \mathrm{softmax}_j(e_{ij})\, b_j, \qquad
        \alpha_j = \sum_i \mathrm{softmax}_i(e_{ij})\, a_i \\
        y = W H\Bigl(\bigl[\textstyle\sum_i G([a_i; \beta_i]);\; \sum_j G([b_j; \alpha_j])\bigr]\Bigr) + w

    F, G and H have two layers of `hidden` units with ReLU, each after dropout. The order of the tokens does not matter.

    Shapes: premise (b, s), hypothesis (b, t) -> logits (b, classes). Padding, on either side, is not read.
    Book: D2L 16.5. Paper: Parikh et al., 2016.

    >>> model = DecomposableAttention(vocab=20, dim=8, hidden=6)
    >>> model(torch.tensor([[4, 9, 2]]), torch.tensor([[4, 2, 0, 0]])).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        vocab: int,
        classes: int = 3,
        *,
        dim: int = 100,
        hidden: int = 200,
        dropout: float | int = 0.2,
        pad: int | None = 0,
    ):
        super().__init__()
        check_sizes("DecomposableAttention", vocab=vocab, dim=dim, hidden=hidden)
        check_classes(classes, "DecomposableAttention")
        check_pad(pad, vocab, "DecomposableAttention")
        self.vocab, self.classes, self.pad = vocab, classes, pad
        self.embedding = nn.Embedding(vocab, dim)
        probability = chance(dropout, "DecomposableAttention")
        self.attend = _layers(dim, hidden, probability)
        self.compare = _layers(2 * dim, hidden, probability)
        self.aggregate = _layers(2 * hidden, hidden, probability)
        self.head = nn.Linear(hidden, classes)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        always = (laws.batch_independence, laws.gradients, laws.determinism, laws.save_load, laws.finiteness)
        return (*always, laws.permutation_invariance)

    def forward(self, premise: Any, hypothesis: Any, premise_mask: Any = None, hypothesis_mask: Any = None) -> Tensor:
        return self.head(self.pair_vectors(premise, hypothesis, premise_mask, hypothesis_mask))

    def pair_vectors(
        self, premise: Any, hypothesis: Any, premise_mask: Any = None, hypothesis_mask: Any = None
    ) -> Tensor:
        """What the last layer reads of each pair: (b, hidden)."""
        if isinstance(premise, Tensor) and isinstance(hypothesis, Tensor) and premise.shape[0] != hypothesis.shape[0]:
            raise WonderlandError(
                f"DecomposableAttention got {len(premise)} premises and {len(hypothesis)} hypotheses: give pairs."
            )
        (a, real_a), (b, real_b) = self._embed(premise, premise_mask), self._embed(hypothesis, hypothesis_mask)
        scores = self.attend(a) @ self.attend(b).transpose(1, 2)
        both = real_a.unsqueeze(2) & real_b.unsqueeze(1)
        beta = masked_softmax(scores, both) @ b
        alpha = masked_softmax(scores.transpose(1, 2), both.transpose(1, 2)) @ a
        sides = [
            (self.compare(torch.cat([own, other], 2)) * real.unsqueeze(2)).sum(1)
            for own, other, real in ((a, beta, real_a), (b, alpha, real_b))
        ]
        return self.aggregate(torch.cat(sides, 1))

    def _embed(self, tokens: Any, mask: Any) -> tuple[Tensor, Tensor]:
        check_tokens(tokens, "DecomposableAttention")
        check_mask(mask, tokens, "DecomposableAttention")
        real = real_tokens(tokens, mask, self.pad)
        h = look_up(tokens if mask is None else tokens.masked_fill(~mask, 0), self.embedding.weight)
        return h * real.unsqueeze(2), real


def _layers(inputs: int, hidden: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Dropout(dropout),
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
    )
