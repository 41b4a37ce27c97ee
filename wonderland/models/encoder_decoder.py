"""The encoder-decoder: one sequence is read whole, another is written one token after the other."""

import inspect
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, nearest, part
from wonderland.models.tokens import check_input, check_rows, look_up, take, to_the_left
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP, chance
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.hooks import heard
from wonderland.nn.contract.mixer import hide, lengths, positions
from wonderland.nn.contract.state import COUNT, State, fits, misfit, other_type, over
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention
from wonderland.nn.positions import Position, Sinusoidal

SCALES = ("embedding", "head", "none")


@part
class EncoderDecoder(Checked, nn.Module):
    r"""The transformer as it was published, and T5 by its arguments: a source is read, a target written.

    .. math:: z = \mathrm{encoder}(E_x + s), \qquad h = \mathrm{decoder}(E_y + s \mid z), \qquad \text{logits} = h\, W^\top

    - `depth` blocks read and `target_depth` (as many unless given) write; `target_vocab` is that of `vocab` unless given.
    - `mixer` mixes the target's tokens, `reader` the source's, `cross` lets the target read the source, `channel` mixes
      features: specs, attention with `heads` heads and a ReLU network unless given. A `reader` left out is the `mixer`
      looking both ways.
    - `position` is added to both embeddings (sinusoidal unless given, `Learned.spec()`, False for none); `relative` is a
      bias that all layers of a side share (`RelativeBuckets.spec()`, T5).
    - `placement`: "pre", or "post" as published; `norm` is its kind.
    - `share`: source and target have one embedding; `tie`: the head is the target's embedding.
    - `scale`: "embedding" multiplies embeddings by the root of dim, as published; "head" divides what the head reads by
      it, as T5 does; "none" neither.
    - `begin` is the token that `features`, the trunk of heads, puts before the target.

    T5 is `EncoderDecoder(vocab, dim, depth, mixer=Attention.spec(scale=1.0), cross=CrossAttention.spec(scale=1.0),
    channel=MLP.spec(activation="relu"), position=False, relative=RelativeBuckets.spec(), norm=RMSNorm.spec(), scale="head")`.

    `forward(source, tokens, source_mask, mask)` is `stream(tokens, prepare(source, source_mask), mask)`. Real tokens of a row
    may stand anywhere as long as they stand together. `given(source)` is a language model of the target.

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
    ):
        super().__init__()
        words = vocab if target_vocab is None else target_vocab
        if min(vocab, words, dim) < 1:
            raise WonderlandError(
                f"An EncoderDecoder needs at least one token and one feature, not vocab={vocab}, "
                f"target_vocab={words}, dim={dim}."
            )
        if scale not in SCALES:
            raise WonderlandError(
                f"What is scaled is {', '.join(map(repr, SCALES))}, not {scale!r}.{nearest(str(scale), SCALES)}"
            )
        if share and words != vocab:
            raise WonderlandError(
                f"A source of {vocab} tokens and a target of {words} cannot share one embedding: give share=False."
            )
        self.source_vocab, self.vocab, self.dim, self.scale = vocab, words, dim, scale
        self.begin = begin
        self.dropout = chance(dropout, "EncoderDecoder")
        std = {"embedding": dim**-0.5, "head": 1.0, "none": 0.02}[scale]
        self.embedding = _table(words, dim, std)
        self.source_embedding = None if share else _table(vocab, dim, std)
        place = Sinusoidal.spec() if position in (None, True) else position
        self.position = _door(place, dim) if isinstance(place, Spec) else None
        # A position that is trained is another one for each side, and one that is not is the same.
        trained = self.position is not None and any(True for _ in self.position.parameters())
        self.source_position = _door(place, dim) if trained and isinstance(place, Spec) else None
        mixer = Attention.spec(heads=heads) if mixer is None else mixer
        reader = facing(mixer, causal=False) if reader is None else reader
        cross = CrossAttention.spec(heads=heads) if cross is None else cross
        channel = MLP.spec(activation="relu", bias=True) if channel is None else channel
        how = {"channel": channel, "placement": placement, "norm": norm, "dropout": dropout}
        final: Spec | bool = norm if norm is not None and placement != "post" else True
        self.encoder = Stack(
            dim,
            depth,
            Block.spec(mixer=reader, **how),
            norm=final,
            position=None if relative is None else facing(relative, causal=False),
        )
        self.decoder = Stack(
            dim,
            depth if target_depth is None else target_depth,
            Block.spec(mixer=facing(mixer, causal=True), cross=cross, **how),
            norm=final,
            position=None if relative is None else facing(relative, causal=True),
        )
        if not self.decoder.causal:
            raise WonderlandError(
                f"An EncoderDecoder writes one token after another, and {mixer.name} looks ahead: give a causal mixer."
            )
        self.layout = (COUNT, self.decoder.state_layout())
        self.head = None if tie else nn.Linear(dim, words, bias=False)
        if self.head is not None:
            nn.init.normal_(self.head.weight, std=0.02)

    def laws(self):
        """What this instance promises of the target, the source held fixed; the suite checks it, also through `given`."""
        from wonderland import laws

        lost = (laws.shift_equivariance, laws.permutation_equivariance, laws.locality, laws.streaming)
        return tuple(law for law in self.decoder.laws() if law not in lost)

    def forward(
        self, source: Tensor, tokens: Tensor, source_mask: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        return self.logits(self._features(source, tokens, source_mask, mask))

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the decoder knows of each token of a text that both sides read, the decoder one step late: (b, t, dim)."""
        check_input(tokens, mask, "An EncoderDecoder")
        first = torch.full_like(tokens[:, :1], self.begin)
        late = torch.cat([first, tokens[:, :-1]], 1)
        if mask is not None:
            opening = mask & ~torch.cat([torch.zeros_like(mask[:, :1]), mask[:, :-1]], 1)
            late = late.masked_fill(opening, self.begin)
        return self._features(tokens, late, mask, mask)

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
            tokens, mask, back = to_the_left(tokens, mask)
        read = self.decoder.read(memory, source_mask)
        h = heard(self.decoder, self.embed(tokens, None, mask), lambda h: self.decoder.whole(h, mask, read))
        return h if back is None else take(h, back)

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """What is known of each token of the source, (b, s, dim), real tokens first, and where they are."""
        check_input(source, source_mask, "The source of an EncoderDecoder")
        if source_mask is not None:
            check_rows(source_mask, "The source of an EncoderDecoder")
            source, source_mask, _ = to_the_left(source, source_mask)
        table = self.embedding if self.source_embedding is None else self.source_embedding
        place = self.position if self.source_position is None else self.source_position
        h = self._embed(source, table.weight, place, None, source_mask)
        return heard(self.encoder, h, lambda h: self.encoder.whole(h, source_mask)), source_mask

    def prepare(self, source: Tensor, source_mask: Tensor | None = None) -> State:
        """Read the source: the state before the first token of the target, for `stream`."""
        memory, source_mask = self.encode(source, source_mask)
        count = torch.zeros(memory.shape[0], dtype=torch.int64, device=memory.device)
        return count, self.decoder.prepare(memory, source_mask)

    def stream(self, tokens: Tensor, state: State | None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Continue after `state`, that of `prepare` at first, with new tokens of the target: logits and the next state."""
        h, state = self.proceed(tokens, state, mask)
        return self.logits(h), state

    def proceed(self, tokens: Tensor, state: State | None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """`stream` before its head: the features (b, t, dim) of new tokens, and the next state."""
        if state is None:
            raise WonderlandError("An EncoderDecoder writes about a source: stream from the state of prepare(source).")
        check_input(tokens, mask, "The target of an EncoderDecoder")
        self.check_state(state, tokens.shape[0])
        back = None
        if mask is not None:
            tokens, mask, back = to_the_left(tokens, mask)
        seen, inner = state
        h, inner = heard(self.decoder, self.embed(tokens, seen, mask), lambda h: self.decoder.proceed(h, inner, mask))
        new = tokens.shape[1] if mask is None else lengths(mask)
        return (h if back is None else take(h, back)), (seen + new, inner)

    def given(self, source: Tensor, source_mask: Tensor | None = None) -> "Given":
        """A language model of the target: `forward(tokens, mask)` and `stream(tokens, state, mask)` about this source."""
        return Given(self, source, source_mask)

    def embed(self, tokens: Tensor, seen: Tensor | None, mask: Tensor | None) -> Tensor:
        """Vectors of the target's tokens with their positions added, 0 where masked."""
        return self._embed(tokens, self.embedding.weight, self.position, seen, mask)

    def _embed(
        self, tokens: Tensor, table: Tensor, place: Position | None, seen: Tensor | None, mask: Tensor | None
    ) -> Tensor:
        h = look_up(tokens if mask is None else tokens.masked_fill(~mask, 0), table)
        if self.scale == "embedding":
            h = h * self.dim**0.5
        if place is not None:
            at = positions(h, seen)
            h = h + place.embed(at if mask is None else at.masked_fill(~mask, 0)).to(h.dtype)
        if self.training and self.dropout:
            h = F.dropout(h, self.dropout)
        return hide(h, mask)

    def logits(self, h: Tensor) -> Tensor:
        """Features (..., dim) to a score for each token of the target's vocabulary."""
        if self.scale == "head":
            h = h * self.dim**-0.5
        return F.linear(h, self.embedding.weight) if self.head is None else self.head(h)

    def check_state(self, state: Any, batch: int) -> None:
        """Say what is wrong with a state that is not one of this model's."""
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
                "go on in the type that the state was made in."
            )


class Given(nn.Module):
    """An encoder-decoder about one source: a language model of the target. A source of one row serves any number of rows.

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
        """What the model promises of its target, and that it streams."""
        from wonderland import laws

        return (*self.model.laws(), laws.streaming)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        source, source_mask = self._for(tokens)
        return self.model(source, tokens, source_mask, mask)

    def stream(self, tokens: Tensor, state: State | None = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Continue after `state`; None reads the source first."""
        if state is None:
            state = self.model.prepare(self.source, self.source_mask)
            if len(self.source) == 1 and isinstance(tokens, Tensor) and tokens.dim() == 2:
                state = over(state, lambda entry: entry.expand(len(tokens), *entry.shape[1:]))
        return self.model.stream(tokens, state, mask)

    def _for(self, tokens: Any) -> tuple[Tensor, Tensor | None]:
        rows = len(tokens) if len(self.source) == 1 and isinstance(tokens, Tensor) and tokens.dim() == 2 else -1
        mask = self.source_mask
        return self.source.expand(rows, -1), None if mask is None else mask.expand(rows, -1)


def facing(spec: Spec, *, causal: bool) -> Spec:
    """A spec with its direction set, where it has one that was left open."""
    if "causal" in spec.arguments or "causal" not in inspect.signature(spec.part).parameters:
        return spec
    return spec.changed(causal=causal)


def _table(vocab: int, dim: int, std: float) -> nn.Embedding:
    table = nn.Embedding(vocab, dim)
    nn.init.normal_(table.weight, std=std)
    return table


def _door(spec: Spec, dim: int) -> Position:
    position = spec.build(dim=dim)
    if not isinstance(position, Position) or position.kind != "embed":
        raise WonderlandError(
            f"{spec.name} cannot be added to an embedding: put it into the mixer's spec, or give it as relative."
        )
    return position
