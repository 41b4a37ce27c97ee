"""The encoder: a bidirectional transformer over tokens."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.encoder_decoder import with_direction
from wonderland.models.tokens import align_left, check_input, check_rows, look_up, restore_order
from wonderland.nn.blocks.block import Block, Field
from wonderland.nn.blocks.shared_stack import SharedStack
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP, chance
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.contract.hooks import call_with_hooks
from wonderland.nn.contract.mixer import hide
from wonderland.nn.contract.mixer import positions as count_positions
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm, NoNorm
from wonderland.nn.positions import Learned, Position
from wonderland.ops.shapes import readable


@part
class Encoder(Checked, nn.Module):
    r"""A bidirectional transformer: BERT, and the encoder of T5, by its arguments.

    .. math:: h = \mathrm{norm}(E_x + S_{\mathrm{segment}} + P_{\mathrm{position}}), \qquad h \leftarrow \mathrm{stack}(h)

    - `mixer`: the token mixer (non-causal attention by default); `channel`: the channel mixer (an MLP with GELU).
    - `position` is added to the embedding (`Learned.spec(length=512)` by default, False for none); `relative` is an attention
      bias that all layers share (`RelativeBuckets.spec()`).
    - `segments`: the number of segment embeddings, 0 for none. `forward` takes `segments` (b, t); by default they are all 0,
      or with `separator`, the token that ends a segment, counted: the second sentence of a pair is segment 1.
    - `placement` of norms is "post" as published, `norm` their spec; `embed_norm` adds one after the embedding.
    - `first_norm`: whether the first block has a norm before its mixer; a norm after the embedding may take its place
      (ModernBERT). `embed_dropout` is `dropout` by default.
    - `pooler`: a layer on the first token, :math:`\tanh(W h_1 + b)`, as a summary of the sequence: `summary(features)`.

    - `embed_dim`: the width of the embeddings and their norm; a linear layer brings them to dim (ELECTRA).
    - `groups`: how many groups of blocks the layers share, None for blocks of their own; `group_depth`: the blocks of a group
      (ALBERT, `nn.SharedStack`).

    By default positions count the real tokens of a row, wherever its padding is; `positions` (b, t) overrides them.

    Shapes: tokens (b, t) -> features (b, t, dim), 0 where masked. Heads on top: `MaskedLM`, `SequenceClassifier`,
    `TokenClassifier`, `SpanFinder`.
    Book: Alice 10.3, 11.1; D2L 15.8. Paper: Devlin et al., 2019.

    >>> model = Encoder(vocab=10, dim=16, depth=2, mixer=Attention.spec(heads=2))
    >>> model(torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 16])
    """

    takes_specs = True
    causal = False

    def __init__(
        self,
        vocab: int,
        dim: int = 128,
        depth: int = 4,
        *,
        mixer: Spec | list[Spec] | None = None,
        channel: Spec | None = None,
        position: Spec | bool | None = None,
        relative: Spec | None = None,
        segments: int = 0,
        separator: int | None = None,
        placement: str = "post",
        norm: Spec | None = None,
        embed_norm: bool = True,
        pooler: bool = False,
        dropout: float | int = 0.0,
        embed_dim: int | None = None,
        groups: int | None = None,
        group_depth: int = 1,
        first_norm: bool = True,
        embed_dropout: float | int | None = None,
    ):
        super().__init__()
        if not first_norm and (placement != "pre" or groups is not None):
            raise WonderlandError('first_norm=False is for an Encoder with placement="pre" and blocks of its own.')
        at_least_one("Encoder", embed_dim=embed_dim)
        self.embed_dim = width = dim if embed_dim is None else embed_dim
        if min(vocab, dim) < 1 or segments < 0:
            raise WonderlandError(
                f"An Encoder needs at least one token and one feature, and no fewer than 0 segments, not vocab={vocab}, "
                f"dim={dim}, segments={segments}."
            )
        self.vocab, self.dim, self.segments, self.separator = vocab, dim, segments, separator
        self.dropout = chance(dropout if embed_dropout is None else embed_dropout, "Encoder")
        self.embedding = nn.Embedding(vocab, width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        added = Learned.spec(length=512) if position in (None, True) else position
        self.position = _added_position(added, width) if isinstance(added, Spec) else None
        self.segment = nn.Embedding(segments, width) if segments else None
        if self.segment is not None:
            nn.init.normal_(self.segment.weight, std=0.02)
        mixers = mixer if isinstance(mixer, list | tuple) else [Attention.spec() if mixer is None else mixer]
        blocks = [
            Block.spec(
                mixer=with_direction(layer_mixer, causal=False) if isinstance(layer_mixer, Spec) else layer_mixer,
                channel=MLP.spec(bias=True) if channel is None else channel,
                placement=placement,
                norm=norm,
                dropout=dropout,
            )
            for layer_mixer in mixers
        ]
        if not first_norm:
            own = LayerNorm.spec() if norm is None else norm
            blocks = [blocks[layer % len(blocks)] for layer in range(depth)]
            blocks[0] = blocks[0].changed(norm=[NoNorm.spec(), own])
        final: Spec | bool = norm if norm is not None and placement != "post" else True
        if groups is None:
            self.stack = Stack(dim, depth, blocks, norm=final, position=relative)
        else:
            shared = {"groups": groups, "group_depth": group_depth}
            self.stack = SharedStack(dim, depth, blocks, norm=final, position=relative, **shared)
        self.norm = (LayerNorm.spec() if norm is None else norm).build(dim=width) if embed_norm else None
        self.expand = None if embed_dim is None else nn.Linear(width, dim)
        self.pooler = nn.Linear(dim, dim) if pooler else None

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        broken = (laws.shift_equivariance, *(() if self.position is None else (laws.permutation_equivariance,)))
        return tuple(law for law in self.stack.laws() if law not in broken)

    @property
    def receptive_field(self) -> Field | None:
        """How many tokens to the left and right an output reads; None if a block does not say."""
        return self.stack.receptive_field

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        self.check(tokens, mask, segments, positions)
        segments = self.segments_of(tokens) if segments is None else segments
        if mask is None:
            h = self.embed(tokens, None, segments, positions)
            return call_with_hooks(self.stack, h, lambda h: self.stack.whole(h, None))
        check_rows(mask, "Encoder")
        original = mask
        tokens, mask, back = align_left(tokens, mask)
        if back is not None:
            segments = None if segments is None else align_left(segments, original)[0]
            positions = None if positions is None else align_left(positions.expand_as(tokens), original)[0]
        h = call_with_hooks(
            self.stack, self.embed(tokens, mask, segments, positions), lambda h: self.stack.whole(h, mask)
        )
        return h if back is None else restore_order(h, back)

    features = forward

    def summary(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """The first real token's features through the pooler, if there is one: (b, t, dim) -> (b, dim)."""
        first = features[:, 0]
        if mask is not None:
            index = mask.to(torch.uint8).argmax(1)
            first = features[torch.arange(features.shape[0], device=features.device), index]
        return first if self.pooler is None else torch.tanh(self.pooler(first))

    def embed(
        self, tokens: Tensor, mask: Tensor | None, segments: Tensor | None, positions: Tensor | None = None
    ) -> Tensor:
        """The sum of token, segment and position embeddings, 0 where masked."""
        h = look_up(tokens if mask is None else tokens.masked_fill(~mask, 0), self.embedding.weight)
        if self.segment is not None:
            segments = torch.zeros_like(tokens) if segments is None else segments
            h = h + F.embedding(segments if mask is None else segments.masked_fill(~mask, 0), self.segment.weight)
        if self.position is not None:
            index = count_positions(h, None) if positions is None else positions
            h = h + self.position.embed(index if mask is None else index.masked_fill(~mask, 0)).to(h.dtype)
        if self.norm is not None:
            h = self.norm.apply_to(h)
        if self.training and self.dropout:
            h = F.dropout(h, self.dropout)
        if self.expand is not None:
            h = self.expand(h)
        return hide(h, mask)

    def segments_of(self, tokens: Tensor) -> Tensor | None:
        """The segment of each token: the number of separators before it, at most the last segment; None without a separator."""
        if self.segment is None or self.separator is None:
            return None
        ends = (tokens == self.separator).long()
        return (ends.cumsum(1) - ends).clamp_max(self.segments - 1)

    def check(self, tokens: Any, mask: Any, segments: Any, positions: Any) -> None:
        """Refuse inputs that do not fit."""
        check_input(tokens, mask, "An Encoder")
        if segments is not None:
            if self.segment is None:
                raise WonderlandError("This Encoder has no segments: leave them out, or build it with segments=2.")
            if not isinstance(segments, Tensor) or segments.shape != tokens.shape or segments.is_floating_point():
                raise WonderlandError(
                    f"An Encoder takes segments as integers {tuple(tokens.shape)}, one for each token."
                )
            if readable(segments) and not ((segments >= 0) & (segments < self.segments)).all():
                raise WonderlandError(f"The segments of this Encoder are 0 to {self.segments - 1}.")
        if positions is not None and (
            not isinstance(positions, Tensor) or positions.dim() != 2 or positions.shape[1] != tokens.shape[1]
        ):
            raise WonderlandError(f"An Encoder takes positions as integers {tuple(tokens.shape)}, one for each token.")


def _added_position(spec: Spec, dim: int) -> Position:
    """The position that is added to the embedding."""
    position = spec.build(dim=dim)
    if not isinstance(position, Position) or position.kind != "embed":
        raise WonderlandError(
            f"{spec.name} cannot be added to an embedding: put it into the mixer's spec, or give it as relative."
        )
    return position
