"""BiRNN: a bidirectional recurrent classifier that reads the states at the first and the last token."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.recurrence import Layer, check_cell
from wonderland.models.tokens import (
    check_classes,
    check_mask,
    check_pad,
    check_sizes,
    check_tokens,
    compact,
    look_up,
    real_tokens,
)
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import lengths
from wonderland.nn.mixers.bidirectional import backwards


@part
class BiRNN(Checked, nn.Module):
    r"""Sentences to classes by a bidirectional recurrent network.

    .. math::
        h^l_i = [\overrightarrow{f}_l(h^{l-1}_{1..i});\; \overleftarrow{f}_l(h^{l-1}_{n..i})], \qquad
        y = W\,[h^L_1;\; h^L_n] + b

    The head reads the last layer's states at the first and the last token, in both directions; each direction's final state is
    among them. Padding on either side is not read.

    - `cell`: "lstm", "gru" or "rnn". `state_size`: width of each direction's state. `depth`: number of layers.
    - `dropout`: between the layers and before the classes.

    Shapes: tokens (b, t) -> logits (b, classes). Book: D2L 16.2. Paper: Schuster and Paliwal, 1997.

    >>> model = BiRNN(vocab=20, classes=3, dim=8, state_size=5)
    >>> model(torch.tensor([[4, 9, 2, 0, 0]])).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        vocab: int,
        classes: int,
        *,
        dim: int = 100,
        state_size: int = 100,
        depth: int = 2,
        cell: str = "lstm",
        dropout: float | int = 0.0,
        pad: int | None = 0,
    ):
        super().__init__()
        check_sizes("BiRNN", vocab=vocab, dim=dim, state_size=state_size, depth=depth)
        check_classes(classes, "BiRNN")
        check_pad(pad, vocab, "BiRNN")
        check_cell(cell, "BiRNN")
        self.vocab, self.classes, self.pad, self.dropout = vocab, classes, pad, chance(dropout, "BiRNN")
        self.embedding = nn.Embedding(vocab, dim)
        widths = [dim, *[2 * state_size] * (depth - 1)]
        self.rightward = nn.ModuleList(Layer(cell, width, state_size) for width in widths)
        self.leftward = nn.ModuleList(Layer(cell, width, state_size) for width in widths)
        self.head = nn.Linear(4 * state_size, classes)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        always = (laws.batch_independence, laws.padding_invariance, laws.gradients, laws.determinism, laws.save_load)
        return (*always, laws.finiteness)

    def forward(self, tokens: Any, mask: Any = None) -> Tensor:
        return self.head(F.dropout(self.features(tokens, mask), self.dropout, self.training))

    def features(self, tokens: Any, mask: Any = None) -> Tensor:
        """The last layer's states at the first and the last token: (b, 4 state_size), 0 for an empty row."""
        check_tokens(tokens, "BiRNN")
        check_mask(mask, tokens, "BiRNN")
        real = real_tokens(tokens, mask, self.pad)
        tokens, real = compact(tokens if mask is None else tokens.masked_fill(~mask, 0), real)
        h = look_up(tokens, self.embedding.weight)
        for depth, (right, left) in enumerate(zip(self.rightward, self.leftward, strict=True)):
            if depth:
                h = F.dropout(h, self.dropout, self.training)
            from_right = backwards(left(backwards(h, real), None, real)[0], real)
            h = torch.cat([right(h, None, real)[0], from_right], -1).masked_fill(~real.unsqueeze(-1), 0)
        last = (lengths(real) - 1).clamp(min=0)
        return torch.cat([h[:, 0], h[torch.arange(h.shape[0], device=h.device), last]], 1)

    vectors = features  # of whole texts, as other classifiers call them
