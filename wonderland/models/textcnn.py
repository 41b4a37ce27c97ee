"""TextCNN: convolutions over token embeddings with max-over-time pooling."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.tokens import (
    check_mask,
    check_pad,
    check_sizes,
    check_tokens,
    look_up,
    real_tokens,
)
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.arguments import Checked
from wonderland.ops.over_time import is_exporting


@part
class TextCNN(Checked, nn.Module):
    r"""Sentences to classes by convolutions of several widths and max-over-time pooling.

    .. math::
        c_{w,j} = \max_i\, \mathrm{relu}(\langle F_{w,j}, E_{x_{i-w+1}}, \dots, E_{x_i} \rangle + b_{w,j}), \qquad
        y = V\, \mathrm{dropout}(c) + v, \qquad \lVert V_k \rVert \le s

    Windows extend past both ends, so that a sentence may be shorter than a filter; only windows that contain a real token
    count, so padding on either side changes nothing. A row of padding only is an empty sentence, with logits v.

    - `widths`: lengths of the filters, `channels` of each.
    - `max_norm`: rows of the last layer are scaled to at most this norm (s = 3 in the paper); None for no limit.
      `constrain()` after each step writes the scaled rows into the weights, which is the paper's projection.
    - `fixed`: a second embedding that is not trained, the buffer `known`, for pretrained word vectors (the paper's two
      channels, concatenated as in D2L).

    Shapes: tokens (b, t) -> logits (b, classes). Book: Alice 8.2; D2L 16.3. Paper: Kim, 2014.

    >>> model = TextCNN(vocab=20, classes=3, dim=8, channels=4)
    >>> model(torch.tensor([[4, 9, 2, 0, 0]])).shape
    torch.Size([1, 3])
    """

    known: Tensor | None

    def __init__(
        self,
        vocab: int,
        classes: int,
        *,
        dim: int = 128,
        widths: Sequence[int] = (3, 4, 5),
        channels: int = 100,
        dropout: float | int = 0.5,
        pad: int | None = 0,
        max_norm: float | int | None = None,
        fixed: bool = False,
    ):
        super().__init__()
        check_sizes("TextCNN", vocab=vocab, dim=dim, channels=channels, classes=classes)
        check_pad(pad, vocab, "TextCNN")
        if not widths:
            raise WonderlandError("TextCNN needs at least one width of filter, as in widths=[3, 4, 5].")
        for width in widths:
            check_sizes("TextCNN", **{"every width": width})
        if max_norm is not None and not max_norm > 0:
            raise WonderlandError(f"TextCNN takes a max_norm above 0, or None for no limit, not {max_norm}.")
        self.vocab, self.classes, self.pad = vocab, classes, pad
        self.dropout, self.max_norm = chance(dropout, "TextCNN"), max_norm
        self.embedding = nn.Embedding(vocab, dim)
        nn.init.uniform_(self.embedding.weight, -0.25, 0.25)
        self.register_buffer("known", torch.zeros(vocab, dim) if fixed else None)
        width_in = 2 * dim if fixed else dim
        self.filters = nn.ModuleList(nn.Conv1d(width_in, channels, width, padding=width - 1) for width in widths)
        self.head = nn.Linear(channels * len(widths), classes)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        always = (laws.batch_independence, laws.padding_invariance, laws.gradients, laws.determinism, laws.save_load)
        return (*always, laws.finiteness, laws.compiles)

    def forward(self, tokens: Any, mask: Any = None) -> Tensor:
        features = F.dropout(self.features(tokens, mask), self.dropout, self.training)
        return F.linear(features, self._limited_weight(), self.head.bias)

    def features(self, tokens: Any, mask: Any = None) -> Tensor:
        """The maximum of each filter over time, at least 0: (b, channels for each width)."""
        check_tokens(tokens, "TextCNN")
        check_mask(mask, tokens, "TextCNN")
        real = real_tokens(tokens, mask, self.pad)
        tokens = tokens if mask is None else tokens.masked_fill(~mask, 0)
        h = look_up(tokens, self.embedding.weight)
        if self.known is not None:
            h = torch.cat([h, F.embedding(tokens, self.known)], -1)
        real = real.to(h.dtype).unsqueeze(1)
        h = h.transpose(1, 2) * real
        pooled = []
        for filters in self.filters:
            width: int = filters.kernel_size[0]  # pyright: ignore
            if is_exporting():  # a pool would fix the length
                has_real = (F.conv1d(real, real.new_ones(1, 1, width), padding=width - 1) > 0).to(h.dtype)
            else:
                has_real = F.max_pool1d(F.pad(real, (width - 1, width - 1)), width, 1)
            pooled.append((F.relu(filters(h)) * has_real).amax(2))
        return torch.cat(pooled, 1)

    vectors = features  # of whole texts, as other classifiers call them

    @torch.no_grad()
    def constrain(self) -> None:
        """Scale rows of the last layer with a norm above `max_norm` down to it; the logits stay the same."""
        self.head.weight.copy_(self._limited_weight())

    def _limited_weight(self) -> Tensor:
        weight = self.head.weight
        if self.max_norm is None:
            return weight
        # Slightly below the limit, so that rounding does not scale a constrained row a second time.
        length = torch.linalg.vector_norm(weight, dim=1, keepdim=True)
        return torch.where(length > self.max_norm, weight * (self.max_norm * (1 - 1e-6) / length), weight)
