"""The encoder-decoder: a bidirectional encoder of the source and a causal decoder of the target."""

import inspect
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, nearest, part
from wonderland.models.tokens import align_left, check_input, check_rows, look_up, restore_order
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP, chance
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.hooks import call_with_hooks
from wonderland.nn.contract.mixer import hide, lengths, positions
from wonderland.nn.contract.state import COUNT, State, fits, misfit, other_type, over
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Position, Sinusoidal

SCALES = ("embedding", "head", "none")


@part
class EncoderDecoder(Checked, nn.Module):
    r"""The original transformer, and T5 by its arguments.

    .. math:: z = \mathrm{encoder}(E_x + s), \qquad h = \mathrm{decoder}(E_y + s \mid z), \qquad \text{logits} = h\, W^\top

    - `depth`: blocks of the encoder; `target_depth`: of the decoder, the same by default. `target_vocab` is `vocab` by default.
    - `mixer`: the decoder's token mixer; `reader`: the encoder's, by default the `mixer` without its causal mask; `cross`: the
      cross mixer; `channel`: the channel mixer. By default these are attention with `heads` heads and an MLP with ReLU.
    - `position` is added to both embeddings (sinusoidal by default, `Learned.spec()`, False for none); `relative` is an
      attention bias that all layers of a side share (`RelativeBuckets.spec()`, T5).
    - `placement`: "pre", or "post" as published; `norm`: the spec of the norms.
    - `reader_channel`: the encoder's channel mixer, where it differs. `embed_norm`: a norm after the embeddings of each side.
    - `logit_bias`: a fixed bias of the logits, which is not trained (BART, Marian).
    - `share`: source and target share one embedding; `tie`: the head shares the weights of the target's embedding.
    - `scale`: "embedding" multiplies embeddings by the square root of dim, as published; "head" divides the input of the head
      by it, as T5 does; "none" does neither.
    - `begin`: the token that `features`, used by classification heads, puts before the target.

    T5 is `EncoderDecoder(vocab, dim, depth, mixer=Attention.spec(scale=1.0), cross=CrossAttention.spec(scale=1.0),
    channel=MLP.spec(activation="relu"), position=False, relative=RelativeBuckets.spec(), norm=RMSNorm.spec(), scale="head")`.

    `forward(source, tokens, source_mask, mask)` equals `stream(tokens, prepare(source, source_mask), mask)`. Padding may be on
    either side. `given(source)` is a language model of the target for a fixed source.

    Shapes: source (b, s), tokens (b, t) -> logits (b, t, target_vocab), 0 where masked; state: (count (b,), the stack's).
    Book: Alice 11.1; D2L 11.7. Papers: Vaswani et al., 2017; Xiong et al., 2020; Raffel et al., 2020.

    >>> model = EncoderDecoder(vocab=10, dim=16, depth=2)
    >>> source, target = torch.zeros(2, 7, dtype=torch.int64), torch.zeros(2, 5, dtype=torch.int64)
    >>> model(source, target).shape
    torch.Size([2, 5, 10])
    >>> logits, state = model.stream(target[:, :3], model.prepare(source))
    """

    takes_specs = True
    causal = True

    def __init__(
        self,
        vocab: int,
        dim: int = 128,
        depth: int = 4,
        *,
        target_vocab: int | None = None,
        target_depth: int | None = None,
        heads: int | None = None,
        mixer: Spec | None = None,
        reader: Spec | None = None,
        cross: Spec | None = None,
        channel: Spec | None = None,
        position: Spec | bool | None = None,
        relative: Spec | None = None,
        placement: str = "pre",
        norm: Spec | None = None,
        share: bool = True,
        tie: bool = True,
        scale: str = "embedding",
        begin: int = 0,
        dropout: float | int = 0.0,
        reader_channel: Spec | None = None,
        embed_norm: bool = False,
        logit_bias: bool = False,
    ):
        super().__init__()
        target_vocab = vocab if target_vocab is None else target_vocab
        if min(vocab, target_vocab, dim) < 1:
            raise WonderlandError(
                f"An EncoderDecoder needs at least one token and one feature, not vocab={vocab}, "
                f"target_vocab={target_vocab}, dim={dim}."
            )
        if scale not in SCALES:
            raise WonderlandError(
                f"scale is {', '.join(map(repr, SCALES))}, not {scale!r}.{nearest(str(scale), SCALES)}"
            )
        if share and target_vocab != vocab:
            raise WonderlandError(
                f"Vocabularies of {vocab} and {target_vocab} tokens cannot share one embedding: give share=False."
            )
        self.source_vocab, self.vocab, self.dim, self.scale = vocab, target_vocab, dim, scale
        self.begin = begin
        self.dropout = chance(dropout, "EncoderDecoder")
        std = {"embedding": dim**-0.5, "head": 1.0, "none": 0.02}[scale]
        self.embedding = _embedding(target_vocab, dim, std)
        self.source_embedding = None if share else _embedding(vocab, dim, std)
        added = Sinusoidal.spec() if position in (None, True) else position
        self.position = _added_position(added, dim) if isinstance(added, Spec) else None
        # Trained positions are separate for the two sides, others are shared.
        trained = self.position is not None and any(True for _ in self.position.parameters())
        self.source_position = _added_position(added, dim) if trained and isinstance(added, Spec) else None
        mixer = Attention.spec(heads=heads) if mixer is None else mixer
        reader = with_direction(mixer, causal=False) if reader is None else reader
        cross = CrossAttention.spec(heads=heads) if cross is None else cross
        channel = MLP.spec(activation="relu", bias=True) if channel is None else channel
        common = {"placement": placement, "norm": norm, "dropout": dropout}
        after = LayerNorm.spec() if norm is None else norm
        self.embed_norm = after.build(dim=dim) if embed_norm else None
        self.source_embed_norm = after.build(dim=dim) if embed_norm else None
        final: Spec | bool = norm if norm is not None and placement != "post" else True
        self.encoder = Stack(
            dim,
            depth,
            Block.spec(mixer=reader, channel=channel if reader_channel is None else reader_channel, **common),
            norm=final,
            position=None if relative is None else with_direction(relative, causal=False),
        )
        self.decoder = Stack(
            dim,
            depth if target_depth is None else target_depth,
            Block.spec(mixer=with_direction(mixer, causal=True), cross=cross, channel=channel, **common),
            norm=final,
            position=None if relative is None else with_direction(relative, causal=True),
        )
        if not self.decoder.causal:
            raise WonderlandError(
                f"The mixer of an EncoderDecoder has to be causal, and {mixer.name} is not: give a causal one."
            )
        self.layout = (COUNT, self.decoder.state_layout())
        self.head = None if tie else nn.Linear(dim, target_vocab, bias=False)
        if self.head is not None:
            nn.init.normal_(self.head.weight, std=0.02)
        self.logit_bias: Tensor | None
        self.register_buffer("logit_bias", torch.zeros(target_vocab) if logit_bias else None)

    def laws(self):
        """What this instance promises of the target for a fixed source; the suite checks it, also through `given`."""
        from wonderland import laws

        broken = (laws.shift_equivariance, laws.permutation_equivariance, laws.locality, laws.streaming)
        return tuple(law for law in self.decoder.laws() if law not in broken)

    def forward(
        self, source: Tensor, tokens: Tensor, source_mask: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        return self.logits(self._features(source, tokens, source_mask, mask))

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Decoder features (b, t, dim) of a text that is both source and target, the target shifted right by one token."""
        check_input(tokens, mask, "An EncoderDecoder")
        first = torch.full_like(tokens[:, :1], self.begin)
        shifted = torch.cat([first, tokens[:, :-1]], 1)
        if mask is not None:
            first_real = mask & ~torch.cat([torch.zeros_like(mask[:, :1]), mask[:, :-1]], 1)
            shifted = shifted.masked_fill(first_real, self.begin)
        return self._features(tokens, shifted, mask, mask)

    def _features(self, source: Tensor, tokens: Tensor, source_mask: Tensor | None, mask: Tensor | None) -> Tensor:
        memory, source_mask = self.encode(source, source_mask)
        check_input(tokens, mask, "The target of an EncoderDecoder")
        if tokens.shape[0] != memory.shape[0]:
            raise WonderlandError(
                f"The source has {memory.shape[0]} rows and the target {tokens.shape[0]}: give one for each."
            )
        back = None
        if mask is not None:
            check_rows(mask, "The target of an EncoderDecoder")
            tokens, mask, back = align_left(tokens, mask)
        read = self.decoder.read(memory, source_mask)
        h = call_with_hooks(self.decoder, self.embed(tokens, None, mask), lambda h: self.decoder.whole(h, mask, read))
        return h if back is None else restore_order(h, back)

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Encoder features (b, s, dim) with padding moved to the right end, and their mask."""
        check_input(source, source_mask, "The source of an EncoderDecoder")
        if source_mask is not None:
            check_rows(source_mask, "The source of an EncoderDecoder")
            source, source_mask, _ = align_left(source, source_mask)
        table = self.embedding if self.source_embedding is None else self.source_embedding
        position = self.position if self.source_position is None else self.source_position
        h = self._embed(source, table.weight, position, None, source_mask, self.source_embed_norm)
        return call_with_hooks(self.encoder, h, lambda h: self.encoder.whole(h, source_mask)), source_mask

    def prepare(self, source: Tensor, source_mask: Tensor | None = None) -> State:
        """Encode the source: the state before the first token of the target, for `stream`."""
        memory, source_mask = self.encode(source, source_mask)
        count = torch.zeros(memory.shape[0], dtype=torch.int64, device=memory.device)
        return count, self.decoder.prepare(memory, source_mask)

    def stream(self, tokens: Tensor, state: State | None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Continue after `state`, first that of `prepare`, with new tokens of the target: logits and the next state."""
        h, state = self.proceed(tokens, state, mask)
        return self.logits(h), state

    def proceed(self, tokens: Tensor, state: State | None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """`stream` before the head: the features (b, t, dim) of new tokens, and the next state."""
        if state is None:
            raise WonderlandError("An EncoderDecoder needs a source: stream from the state of prepare(source).")
        check_input(tokens, mask, "The target of an EncoderDecoder")
        self.check_state(state, tokens.shape[0])
        back = None
        if mask is not None:
            tokens, mask, back = align_left(tokens, mask)
        seen, inner = state
        h, inner = call_with_hooks(
            self.decoder, self.embed(tokens, seen, mask), lambda h: self.decoder.proceed(h, inner, mask)
        )
        new = tokens.shape[1] if mask is None else lengths(mask)
        return (h if back is None else restore_order(h, back)), (seen + new, inner)

    def given(self, source: Tensor, source_mask: Tensor | None = None) -> "Given":
        """A language model of the target for this source: `forward(tokens, mask)` and `stream(tokens, state, mask)`."""
        return Given(self, source, source_mask)

    def embed(self, tokens: Tensor, seen: Tensor | None, mask: Tensor | None) -> Tensor:
        """Embeddings of the target's tokens with positions added, 0 where masked."""
        return self._embed(tokens, self.embedding.weight, self.position, seen, mask, self.embed_norm)

    def _embed(
        self,
        tokens: Tensor,
        table: Tensor,
        position: Position | None,
        seen: Tensor | None,
        mask: Tensor | None,
        norm: Any = None,
    ) -> Tensor:
        h = look_up(tokens if mask is None else tokens.masked_fill(~mask, 0), table)
        if self.scale == "embedding":
            h = h * self.dim**0.5
        if position is not None:
            index = positions(h, seen)
            h = h + position.embed(index if mask is None else index.masked_fill(~mask, 0)).to(h.dtype)
        if norm is not None:
            h = norm.apply_to(h)
        if self.training and self.dropout:
            h = F.dropout(h, self.dropout)
        return hide(h, mask)

    def logits(self, h: Tensor) -> Tensor:
        """Features (..., dim) to a score for each token of the target's vocabulary."""
        if self.scale == "head":
            h = h * self.dim**-0.5
        y = F.linear(h, self.embedding.weight) if self.head is None else self.head(h)
        return y if self.logit_bias is None else y + self.logit_bias

    def check_state(self, state: Any, batch: int) -> None:
        """Refuse a state that this model did not make."""
        if torch.compiler.is_compiling():
            return
        if not fits(state, self.layout, batch) and (wrong := misfit(state, self.layout, batch)):
            raise WonderlandError(
                f"The state does not fit this EncoderDecoder: {wrong}. "
                "A state belongs to the model and the batch that made it: call prepare again."
            )
        if other := other_type(state, self.embedding.weight.dtype):
            raise WonderlandError(
                f"The state of this EncoderDecoder holds {other} and its weights {self.embedding.weight.dtype}: "
                "continue in the type that the state was made in."
            )


class Given(nn.Module):
    """An encoder-decoder with a fixed source: a language model of the target. A source of one row is used for all rows.

    >>> model = EncoderDecoder(vocab=10, dim=16, depth=1).given(torch.zeros(1, 7, dtype=torch.int64))
    >>> model(torch.zeros(3, 5, dtype=torch.int64)).shape
    torch.Size([3, 5, 10])
    """

    causal = True

    def __init__(self, model: EncoderDecoder, source: Tensor, source_mask: Tensor | None = None):
        super().__init__()
        self.model, self.vocab = model, model.vocab
        self.source, self.source_mask = source, source_mask

    def laws(self):
        """The laws of the model for its target, and streaming."""
        from wonderland import laws

        return (*self.model.laws(), laws.streaming)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        source, source_mask = self._expanded(tokens)
        return self.model(source, tokens, source_mask, mask)

    def stream(self, tokens: Tensor, state: State | None = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Continue after `state`; None encodes the source first."""
        if state is None:
            state = self.model.prepare(self.source, self.source_mask)
            if len(self.source) == 1 and isinstance(tokens, Tensor) and tokens.dim() == 2:
                state = over(state, lambda entry: entry.expand(tokens.shape[0], *entry.shape[1:]))
        return self.model.stream(tokens, state, mask)

    def _expanded(self, tokens: Any) -> tuple[Tensor, Tensor | None]:
        """The source and its mask, repeated for every row of tokens."""
        rows = len(tokens) if len(self.source) == 1 and isinstance(tokens, Tensor) and tokens.dim() == 2 else -1
        mask = self.source_mask
        return self.source.expand(rows, *self.source.shape[1:]), None if mask is None else mask.expand(rows, -1)


def with_direction(spec: Spec, *, causal: bool) -> Spec:
    """The spec with `causal` set, if it takes that argument and does not give it."""
    if "causal" in spec.arguments or "causal" not in inspect.signature(spec.part).parameters:
        return spec
    return spec.changed(causal=causal)


def _embedding(vocab: int, dim: int, std: float) -> nn.Embedding:
    table = nn.Embedding(vocab, dim)
    nn.init.normal_(table.weight, std=std)
    return table


def _added_position(spec: Spec, dim: int) -> Position:
    """The position that is added to the embedding."""
    position = spec.build(dim=dim)
    if not isinstance(position, Position) or position.kind != "embed":
        raise WonderlandError(
            f"{spec.name} cannot be added to an embedding: put it into the mixer's spec, or give it as relative."
        )
    return position
