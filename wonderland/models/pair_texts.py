"""Networks of two texts: a row of tokens cut at its separator, and a bi-encoder that compares one vector of each text."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.text_linear import unpack_features
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
from wonderland.ops.over_time import is_exporting


@part
class PairTexts(Checked, nn.Module):
    r"""A network of two sequences on one row of tokens: what is before the separator, and what is after it.

    .. math:: f(x) = g(x_{< s},\; x_{> s})

    `network` is a spec of `DecomposableAttention` or `BiEncoder`. Shapes: tokens (b, t) -> (b, classes).

    >>> network = Spec("models.BiEncoder", {"vocab": 20, "classes": 3, "dim": 8})
    >>> PairTexts(separator=2, network=network)(torch.tensor([[5, 7, 2, 8, 0]])).shape
    torch.Size([1, 3])
    """

    takes_specs = True

    def __init__(self, separator: int, network: Spec, *, pad: int = 0):
        super().__init__()
        if separator == pad or separator < 0:
            raise WonderlandError(f"PairTexts needs a separator that is not padding ({pad}), not {separator}.")
        self.separator, self.pad = separator, pad
        self.network = network.build()

    def forward(self, tokens: Any) -> Tensor:
        return self.network(*self._sides(tokens))

    def vectors(self, tokens: Any) -> Tensor:
        """What the last layer of the network reads of each pair: (b, d)."""
        return self.network.pair_vectors(*self._sides(tokens))  # pyright: ignore

    def _sides(self, tokens: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Both texts with their masks."""
        check_tokens(tokens, "PairTexts")
        cut = tokens == self.separator
        real, after = (tokens != self.pad) & ~cut, cut.cumsum(1) > 0
        return tokens, tokens, real & ~after, real & after


@part
class BiEncoder(Checked, nn.Module):
    r"""A classifier of pairs of texts that reads each alone, with the same weights.

    .. math::
        u = \tanh\bigl(V\,[\mathrm{mean}_i E_{x_i};\; \max_i E_{x_i}] + c\bigr), \qquad
        y = W\,[u;\; v;\; \lvert u - v \rvert;\; u \odot v] + b

    The vectors of texts can be kept and compared later. Shapes: (b, s), (b, t) -> logits (b, classes). Padding is not read.
    Paper: Reimers and Gurevych, 2019.

    >>> model = BiEncoder(vocab=20, classes=2, dim=8)
    >>> model(torch.tensor([[4, 9, 2]]), torch.tensor([[4, 2, 0]])).shape
    torch.Size([1, 2])
    """

    def __init__(self, vocab: int, classes: int, *, dim: int = 100, dropout: float | int = 0.2, pad: int | None = 0):
        super().__init__()
        check_sizes("BiEncoder", vocab=vocab, dim=dim)
        check_classes(classes, "BiEncoder")
        check_pad(pad, vocab, "BiEncoder")
        self.vocab, self.classes, self.pad, self.dropout = vocab, classes, pad, chance(dropout, "BiEncoder")
        self.embedding = nn.Embedding(vocab, dim)
        self.hidden = nn.Linear(2 * dim, dim)
        self.head = nn.Linear(4 * dim, classes)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        return (
            laws.batch_independence,
            laws.gradients,
            laws.determinism,
            laws.save_load,
            laws.finiteness,
            laws.permutation_invariance,
        )

    def forward(self, first: Any, second: Any, first_mask: Any = None, second_mask: Any = None) -> Tensor:
        return self.head(self.pair_vectors(first, second, first_mask, second_mask))

    def pair_vectors(self, first: Any, second: Any, first_mask: Any = None, second_mask: Any = None) -> Tensor:
        """What the last layer reads of each pair: (b, 4 dim)."""
        u, v = self.vectors(first, first_mask), self.vectors(second, second_mask)
        return torch.cat([u, v, (u - v).abs(), u * v], 1)

    def vectors(self, tokens: Any, mask: Any = None) -> Tensor:
        """One vector for each text: (b, t) -> (b, dim)."""
        check_tokens(tokens, "BiEncoder")
        check_mask(mask, tokens, "BiEncoder")
        real = real_tokens(tokens, mask, self.pad).unsqueeze(2)
        h = look_up(tokens if mask is None else tokens.masked_fill(~mask, 0), self.embedding.weight)
        h = nn.functional.dropout(h, self.dropout, self.training)
        mean = (h * real).sum(1) / real.sum(1).clamp_min(1)
        highest = torch.where(real.any(1), h.masked_fill(~real, -torch.inf).amax(1), 0)
        return torch.tanh(self.hidden(torch.cat([mean, highest], 1)))


@part
class MatchEncoder(Checked, nn.Module):
    r"""Texts to vectors of length 1, from sparse features: the encoder of both sides of a search.

    .. math:: e(x) = \frac{\sum_{j \in x} v_j W_j}{\lVert \sum_{j \in x} v_j W_j \rVert}

    W begins with random directions, so that cosines begin near those of the features (TF-IDF), and learns from pairs that belong
    together (`tasks.Matching`). Shapes: packed features (b, k), or (b, 2, k) of which the first side is read, -> (b, dim).

    >>> model = MatchEncoder(features=10, dim=4)
    >>> from wonderland.models.text_linear import pack_features
    >>> model(pack_features(torch.tensor([[1, 4]]), torch.ones(1, 2))).norm().round().item()
    1.0
    """

    reads = "features"

    def __init__(self, features: int, *, dim: int = 384, dropout: float | int = 0.1):
        super().__init__()
        check_sizes("MatchEncoder", features=features, dim=dim)
        self.features, self.dim, self.dropout = features, dim, chance(dropout, "MatchEncoder")
        self.weight = nn.Parameter(torch.randn(features + 1, dim) * dim**-0.5)

    def forward(self, packed: Any) -> Tensor:
        if not isinstance(packed, Tensor) or packed.dim() not in (2, 3) or packed.dtype != torch.int64:
            raise WonderlandError("MatchEncoder takes packed features, whole numbers (b, k): see pack_features.")
        ids, values = unpack_features(packed if packed.dim() == 2 else packed[:, 0])
        return self.pooled(ids, nn.functional.dropout(values.to(self.weight.dtype), self.dropout, self.training))

    vectors = forward

    def pooled(self, ids: Tensor, values: Tensor) -> Tensor:
        """Vectors from numbers of features, 0 for none, and their values: (b, k), (b, k) -> (b, dim)."""
        if is_exporting():
            shown = torch.where(ids > 0, values, torch.zeros_like(values))
            summed = (self.weight[ids] * shown.unsqueeze(2)).sum(1)
        else:
            summed = nn.functional.embedding_bag(ids, self.weight, mode="sum", per_sample_weights=values, padding_idx=0)
        return nn.functional.normalize(summed, dim=1)
