"""Heads on a trunk: classification of sequences and tokens, spans, and masked language modelling."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, nearest, part
from wonderland.models.tokens import check_input, unpadded, wrapped
from wonderland.nn.blocks.heads import POOLS, Pool
from wonderland.nn.channel.activations import Activation
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.contract.mixer import hide
from wonderland.nn.norms.norm import LayerNorm
from wonderland.ops.shapes import readable

GROUP = 32  # rows of one computation, where rows are sorted by length


class Headed(Checked, nn.Module):
    """A trunk (an `Encoder`, a `Decoder` or an `EncoderDecoder`, as a spec or as a module) with a head.

    `pad` is the padding token: without a mask, padding is what comes before the first and after the last other token. With
    None every token is real.
    """

    takes_specs = True
    trunk: Any

    def __init__(self, trunk: Any, *, pad: int | None = 0, dropout: float | int = 0.0):
        super().__init__()
        if not isinstance(trunk, Spec | nn.Module):
            raise WonderlandError(
                f"{type(self).__name__} takes its trunk as a spec such as models.Encoder.spec(...), or as a module, "
                f"not as a {type(trunk).__name__}."
            )
        built: Any = trunk.build() if isinstance(trunk, Spec) else trunk
        if not callable(getattr(built, "features", None)):
            raise WonderlandError(
                f"{type(built).__name__} has no method features, which a head needs: give an Encoder, Decoder or EncoderDecoder."
            )
        self.trunk, self.pad, self.dropout = built, pad, chance(dropout, type(self).__name__)
        self.vocab, self.dim = built.vocab, built.dim

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        own = (laws.batch_independence, laws.padding_invariance, laws.gradients, laws.determinism, laws.save_load)
        return (*own, laws.finiteness, laws.compiles)

    def read(self, tokens: Tensor, mask: Tensor | None, more: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
        """The trunk's features (b, t, dim), and the mask that was used."""
        check_input(tokens, mask, type(self).__name__)
        if mask is None and self.pad is not None:
            mask = unpadded(tokens, self.pad)
            if readable(mask) and mask.all():
                mask = None
        return self.trunk.features(
            tokens, mask, **{key: value for key, value in more.items() if value is not None}
        ), mask

    def build_hidden(
        self, hidden: int | None, activation: str | Activation, bias: bool = True, norm: Spec | None = None
    ) -> int:
        """Build the hidden layer before the head, None for none, and the norm after it; returns the width that the head reads."""
        at_least_one(type(self).__name__, hidden=hidden)
        if norm is not None and hidden is None:
            raise WonderlandError(f"The norm of a {type(self).__name__} follows its hidden layer: give hidden too.")
        self.hidden = None if hidden is None else nn.Linear(self.dim, hidden, bias)
        self.activation = resolve(activation)
        self.norm = None if norm is None else norm.build(dim=hidden)
        return self.dim if hidden is None else hidden

    def hidden_features(self, x: Tensor) -> Tensor:
        """Features through the hidden layer, where there is one, and its norm."""
        if self.hidden is None:
            return x
        x = self.activation(self.hidden(x))
        return x if self.norm is None else self.norm.apply_to(x)

    def drop(self, x: Tensor) -> Tensor:
        """Dropout in training."""
        return F.dropout(x, self.dropout) if self.training and self.dropout else x


@part
class SequenceClassifier(Headed):
    r"""A classifier of sequences: pooled features, an optional hidden layer, a linear layer.

    .. math:: y = W\, \mathrm{norm}(\phi(V\, \mathrm{pool}(h) + c)) + b

    The hidden layer is there if `hidden`, its width, is given; `hidden_bias` gives it c, `norm` a norm.
    `pool` is one of `nn.Pool` ("mean", "max", "first", "last", "attention"), or "summary" for the trunk's own
    pooler (BERT). With `at`, the features of the last token of that id are used instead (the end token of T5). A pair of texts
    is one row, with its two parts marked by `segments` or the encoder's `separator`.

    Shapes: tokens (b, t) -> (b, classes). Book: D2L 16.6. Paper: Devlin et al., 2019.

    >>> from wonderland.models.encoder import Encoder
    >>> model = SequenceClassifier(Encoder.spec(vocab=10, dim=16, depth=1), classes=3)
    >>> model(torch.tensor([[1, 2, 0, 0], [3, 4, 5, 0]])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        trunk: Any,
        classes: int,
        *,
        pool: str = "mean",
        at: int | None = None,
        hidden: int | None = None,
        activation: str | Activation = "tanh",
        bias: bool = True,
        hidden_bias: bool = True,
        norm: Spec | None = None,
        pad: int | None = 0,
        dropout: float | int = 0.0,
    ):
        super().__init__(trunk, pad=pad, dropout=dropout)
        if pool not in (*POOLS, "summary"):
            choices = (*POOLS, "summary")
            raise WonderlandError(
                f"There is no pooling called {pool!r}.{nearest(pool, choices)} The choices are {', '.join(choices)}."
            )
        if pool == "summary" and not callable(getattr(self.trunk, "summary", None)):
            raise WonderlandError(f"{type(self.trunk).__name__} has no summary: choose another pool.")
        self.at = at
        self.pool = None if pool == "summary" or at is not None else Pool(self.dim, how=pool)
        width = self.build_hidden(hidden, activation, hidden_bias, norm)
        self.head = nn.Linear(width, checked_classes(classes, "SequenceClassifier"), bias)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        return self.answer(self.vectors(tokens, mask, segments, positions))

    def vectors(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """The pooled features of texts, which the head reads: (b, t) -> (b, dim).

        Without gradients, many rows with padding at their right are sorted by length and computed in groups, which takes less time.
        """
        if mask is None and segments is None and positions is None and self._sorts(tokens):
            assert self.pad is not None
            lengths = (tokens != self.pad).sum(1)
            order = lengths.argsort(stable=True)
            groups = order.split(GROUP)
            vectors = torch.cat([self._vectors(tokens[rows, : max(1, int(lengths[rows].max()))]) for rows in groups])
            return vectors[order.argsort()]
        return self._vectors(tokens, mask, segments, positions)

    def _sorts(self, tokens: Tensor) -> bool:
        """Whether rows are many, padded at the right only, and need no gradients."""
        if self.training or torch.is_grad_enabled() or self.pad is None or not readable(tokens) or len(tokens) <= GROUP:
            return False
        real = tokens != self.pad
        return bool((real[:, :-1] >= real[:, 1:]).all())

    def _vectors(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        h, mask = self.read(tokens, mask, {"segments": segments, "positions": positions})
        return self.pooled(h, mask, tokens)

    def answer(self, pooled: Tensor) -> Tensor:
        """Pooled features (b, dim) to logits of classes."""
        return self.head(self.drop(self.hidden_features(pooled)))

    def pooled(self, h: Tensor, mask: Tensor | None, tokens: Tensor) -> Tensor:
        """Features (b, t, dim) to one vector for each row."""
        if self.at is not None:
            matches = tokens == self.at if mask is None else (tokens == self.at) & mask
            if readable(matches) and not matches.any(1).all():
                row = int((~matches.any(1)).nonzero()[0])
                raise WonderlandError(
                    f"Row {row} has no token {self.at}, whose features this SequenceClassifier uses: add it."
                )
            last = matches.shape[1] - 1 - matches.flip(1).to(torch.uint8).argmax(1)
            return h[torch.arange(h.shape[0], device=h.device), last]
        if self.pool is None:
            return self.trunk.summary(h, mask)
        if mask is None:
            return self.pool(h)
        first = mask.to(torch.uint8).argmax(1, keepdim=True)
        if not readable(first) or first.any():
            # Pools expect padding at the right end.
            t = mask.shape[1]
            index = wrapped(torch.arange(t, device=mask.device) + first, t)
            h, mask = h.gather(1, index.unsqueeze(-1).expand(-1, -1, h.shape[2])), mask.gather(1, index)
        return self.pool(h, mask)


@part
class TokenClassifier(Headed):
    """A classifier of tokens, such as part-of-speech tags; logits are 0 where masked.

    `hidden` is the width of a layer before the head, None for none, with `activation` and `norm` after it.

    Shapes: tokens (b, t) -> (b, t, classes). Book: D2L 16.6.

    >>> from wonderland.models.encoder import Encoder
    >>> TokenClassifier(Encoder.spec(vocab=10, dim=16, depth=1), classes=3)(torch.tensor([[1, 2, 0]])).shape
    torch.Size([1, 3, 3])
    """

    def __init__(
        self,
        trunk: Any,
        classes: int,
        *,
        hidden: int | None = None,
        activation: str | Activation = "gelu",
        bias: bool = True,
        hidden_bias: bool = True,
        norm: Spec | None = None,
        pad: int | None = 0,
        dropout: float | int = 0.0,
    ):
        super().__init__(trunk, pad=pad, dropout=dropout)
        width = self.build_hidden(hidden, activation, hidden_bias, norm)
        self.head = nn.Linear(width, checked_classes(classes, type(self).__name__), bias)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        h, mask = self.read(tokens, mask, {"segments": segments, "positions": positions})
        return hide(self.head(self.drop(self.hidden_features(h))), mask)


@part
class SpanFinder(TokenClassifier):
    """Start and end of a span, such as the answer to a question: two scores for each token.

    Shapes: tokens (b, t) -> (b, t, 2), the scores of a start and of an end; `best_spans` decodes. Book: D2L 16.6.

    >>> from wonderland.models.encoder import Encoder
    >>> SpanFinder(Encoder.spec(vocab=10, dim=16, depth=1))(torch.tensor([[1, 2, 0]])).shape
    torch.Size([1, 3, 2])
    """

    def __init__(
        self,
        trunk: Any,
        *,
        hidden: int | None = None,
        activation: str | Activation = "gelu",
        bias: bool = True,
        hidden_bias: bool = True,
        norm: Spec | None = None,
        pad: int | None = 0,
        dropout: float | int = 0.0,
    ):
        before = {"hidden": hidden, "activation": activation, "hidden_bias": hidden_bias, "norm": norm}
        super().__init__(trunk, 2, bias=bias, pad=pad, dropout=dropout, **before)


@part
class MaskedLM(Headed):
    r"""A masked language model, and with `sentences` also a next-sentence classifier.

    .. math:: y = \mathrm{norm}(\phi(V h + c))\, W^\top + b

    `tie` makes W the embedding, `bias` adds one to the logits, and `hidden_bias` is c. `models.mask_tokens` masks texts for training.

    Shapes: tokens (b, t) -> logits (b, t, vocab), 0 where masked; `both` also gives (b, 2), the logit of "follows" first.
    Book: D2L 15.8 to 15.10. Paper: Devlin et al., 2019.

    >>> from wonderland.models.encoder import Encoder
    >>> model = MaskedLM(Encoder.spec(vocab=10, dim=16, depth=1, segments=2, pooler=True), sentences=True)
    >>> words, pair = model.both(torch.tensor([[1, 2, 3]]))
    >>> words.shape, pair.shape
    (torch.Size([1, 3, 10]), torch.Size([1, 2]))
    """

    def __init__(
        self,
        trunk: Any,
        *,
        activation: str | Activation = "gelu",
        norm: Spec | None = None,
        tie: bool = True,
        bias: bool = True,
        hidden_bias: bool = True,
        sentences: bool = False,
        pad: int | None = 0,
    ):
        super().__init__(trunk, pad=pad)
        width = getattr(self.trunk, "embed_dim", self.dim)
        self.transform = nn.Linear(self.dim, width, hidden_bias)
        self.activation = resolve(activation)
        self.norm = (LayerNorm.spec() if norm is None else norm).build(dim=width)
        self.head = None if tie else nn.Linear(width, self.vocab, bias=False)
        self.bias = nn.Parameter(torch.zeros(self.vocab)) if bias else None
        self.pair = nn.Linear(self.dim, 2) if sentences else None

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        h, mask = self.read(tokens, mask, {"segments": segments, "positions": positions})
        return hide(self.logits(h), mask)

    def both(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The logits of tokens, and of whether the second segment follows the first."""
        if self.pair is None:
            raise WonderlandError("This MaskedLM has no next-sentence classifier: build it with sentences=True.")
        h, mask = self.read(tokens, mask, {"segments": segments, "positions": positions})
        return hide(self.logits(h), mask), self.pair(self.trunk.summary(h, mask))

    def logits(self, h: Tensor) -> Tensor:
        """Features (..., dim) to logits over the vocabulary."""
        h = self.norm.apply_to(self.activation(self.transform(h)))
        logits = F.linear(h, self.trunk.embedding.weight) if self.head is None else self.head(h)
        return logits if self.bias is None else logits + self.bias


def best_spans(scores: Tensor, mask: Tensor | None = None, *, longest: int | None = None) -> Tensor:
    """The best span of each row: (b, t, 2) -> (b, 2), start and end, both inclusive.

    It has the largest sum of start and end scores among spans of at most `longest` tokens.

    >>> best_spans(torch.tensor([[[0.0, 8.0], [5.0, 0.0], [0.0, 4.0]]]))
    tensor([[1, 2]])
    """
    if scores.dim() != 3 or scores.shape[2] != 2 or 0 in scores.shape:
        raise WonderlandError(f"best_spans takes scores (batch, time, 2), not {tuple(scores.shape)}.")
    if longest is not None and longest < 1:
        raise WonderlandError(f"A span has at least one token, so longest is not {longest}.")
    t = scores.shape[1]
    if mask is not None:
        scores = scores.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    joint = scores[:, :, :1] + scores[:, :, 1].unsqueeze(1)
    places = torch.arange(t, device=scores.device)
    gap = places - places.unsqueeze(1)
    allowed = (gap >= 0) & (gap < (t if longest is None else longest))
    best = joint.masked_fill(~allowed, -torch.inf).flatten(1).argmax(1)
    return torch.stack([best // t, best % t], 1)


def checked_classes(classes: int, name: str) -> int:
    """Refuse fewer than one class."""
    if not isinstance(classes, int) or classes < 1:
        raise WonderlandError(f"{name} needs at least one class, not {classes!r}.")
    return classes
