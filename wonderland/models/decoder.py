"""The decoder: a language model with any causal mixer."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.costs import costs
from wonderland.models.gpt_sizes import GPTSizes
from wonderland.models.tokens import align_left, check_input, check_range, check_rows, look_up, restore_order
from wonderland.nn.blocks.block import Block, Field
from wonderland.nn.blocks.stack import DEEPEST, Stack
from wonderland.nn.channel.mlp import MLP, chance
from wonderland.nn.contract import fast_path
from wonderland.nn.contract.arguments import Checked, check_specs
from wonderland.nn.contract.hooks import call_with_hooks
from wonderland.nn.contract.mixer import check_batch, hide, lengths, positions
from wonderland.nn.contract.state import COUNT, Layout, State, fits, misfit, other_type, plain
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.positions import Position, Rotary


@part
class Decoder(GPTSizes, Checked, nn.Module):
    r"""A language model: an embedding, a stack of blocks with any causal mixer, a head over the vocabulary.

    .. math:: h = E_{x} + s, \qquad h \leftarrow \mathrm{stack}(h), \qquad y = h\, W^\top

    - `mixer`: the spec of the token mixer (attention with rotary positions by default), or a list of specs that is repeated
      over the layers.
    - `channel`: the spec of the channel mixer. None means an MLP, or the mixer's own `companion` (RWKV has one), or nothing if
      the mixer is a block in itself (`alone`, as Mamba is). False means none.
    - `position` is added to the embedding; rotary positions and biases belong into the mixer's spec.
    - `placement` and `norm` are those of `Block`; `norm` may be a list, repeated over the layers. `final_norm` is the norm after
      the stack (the same as `norm` by default), `embed_norm` one after the embedding.
    - `tie`: the head shares the weights of the embedding; without it, `head_bias` gives the head a bias. `embed_dropout` is
      `dropout` by default.
    - `logit_cap` bounds the logits: :math:`y \leftarrow c \tanh(y / c)`.
    - `embed_scale` is what embeddings are multiplied with: :math:`h = c E_x + s`.

    `Decoder.gpt2_small(vocab=1000)` and the like are the published sizes of GPT, GPT-2 and GPT-3 (`GPTSizes`).

    `forward(tokens, mask)` takes all positions at once, with padding on either side. `stream(tokens, state, mask)` continues
    after a state.

    Shapes: tokens (b, t) -> logits (b, t, vocab), 0 where masked; state: (count (b,), the stack's state).
    Book: Alice 11.1; D2L 11.9.

    >>> model = Decoder(vocab=10, dim=16, depth=2, mixer=Attention.spec(heads=2))
    >>> model(torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 10])
    """

    takes_specs = True
    causal = True

    def __init__(
        self,
        vocab: int,
        dim: int = 128,
        depth: int = 4,
        *,
        mixer: Any = None,
        channel: Any = None,
        position: Spec | None = None,
        placement: str = "pre",
        norm: Spec | list[Spec] | None = None,
        final_norm: Spec | None = None,
        embed_norm: Spec | None = None,
        tie: bool = True,
        dropout: float | int = 0.0,
        embed_dropout: float | int | None = None,
        layer_scale: float | int | None = None,
        drop_path: float | int = 0.0,
        head_bias: bool = False,
        embed_scale: float | int = 1.0,
        logit_cap: float | int | None = None,
    ):
        super().__init__()
        if logit_cap is not None and not logit_cap > 0:
            raise WonderlandError(f"A Decoder bounds its logits by a logit_cap above 0, not {logit_cap}.")
        self.logit_cap = None if logit_cap is None else float(logit_cap)
        if tie and head_bias:
            raise WonderlandError(
                "A Decoder with tie=True has no bias at its head: give tie=False, or leave head_bias out."
            )
        if min(vocab, dim) < 1:
            raise WonderlandError(f"A Decoder needs at least one token and one feature, not vocab={vocab}, dim={dim}.")
        mixers = mixer if isinstance(mixer, list | tuple) else [_attention(dim) if mixer is None else mixer]
        expected = "The mixer of a Decoder is a spec such as nn.Mamba.spec(), or a list of specs"
        if not mixers:
            raise WonderlandError(f"{expected}, not an empty list.")
        check_specs(mixers, expected)
        if channel is not None and not isinstance(channel, bool):
            check_specs([channel], "The channel of a Decoder is a spec such as nn.MLP.spec(), None or False")
        norms = norm if isinstance(norm, list | tuple) else [norm]
        self.vocab, self.dim, self.embed_scale = vocab, dim, float(embed_scale)
        self.dropout = chance(dropout if embed_dropout is None else embed_dropout, "Decoder")
        self.embedding = nn.Embedding(vocab, dim)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.position = None if position is None else _added_position(position, dim)
        blocks = [
            Block.spec(
                mixer=layer_mixer,
                channel=_channel(layer_mixer, channel),
                placement=placement,
                norm=layer_norm,
                dropout=dropout,
                layer_scale=layer_scale,
                drop_path=drop_path,
            )
            for layer_mixer, layer_norm in _layers(mixers, norms)
        ]
        last = norms[0] if final_norm is None else final_norm
        final: Spec | bool = last if last is not None and placement != "post" else True
        self.stack = Stack(dim, depth, blocks, norm=final)
        self.embed_norm = None if embed_norm is None else embed_norm.build(dim=dim)
        if not self.stack.causal:
            names = " or ".join(
                sorted({type(module).__name__ for module in self.stack.modules() if _not_causal(module)})
            )
            raise WonderlandError(f"A Decoder needs causal mixers, and {names} is not causal here: give a causal one.")
        self.layout = self.state_layout()
        # A tied head has no parameter of its own, so that a saved model holds the shared weights once.
        self.head = None if tie else nn.Linear(dim, vocab, bias=head_bias)
        if self.head is not None:
            nn.init.normal_(self.head.weight, std=0.02)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        # There is no zero token to shift in, and positions break the symmetry between tokens.
        broken = (laws.shift_equivariance, *(() if self.position is None else (laws.permutation_equivariance,)))
        return tuple(law for law in self.stack.laws() if law not in broken)

    @property
    def receptive_field(self) -> Field | None:
        """How many tokens back an output reads, None for no limit; None if a block does not say."""
        return self.stack.receptive_field

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.logits(self.features(tokens, mask))

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """`forward` before the head: features (b, t, dim), 0 where masked."""
        self.check(tokens, mask)
        if mask is None:
            return call_with_hooks(self.stack, self.embed(tokens, None, None), lambda h: self.stack.whole(h, None))
        check_rows(mask, "Decoder")
        tokens, mask, back = align_left(tokens, mask)
        h = call_with_hooks(self.stack, self.embed(tokens, None, mask), lambda h: self.stack.whole(h, mask))
        return h if back is None else restore_order(h, back)

    def stream(self, tokens: Tensor, state: State | None = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Continue after `state` (None: at the beginning) with new tokens; returns logits and the next state."""
        if (stepped := fast_path.model_step(self, tokens, state, mask)) is not None:
            return stepped
        h, state = self.proceed(tokens, state, mask)
        return self.logits(h), state

    def proceed(self, tokens: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        """`stream` before the head: the features (b, t, dim) of new tokens, and the next state."""
        self.check(tokens, mask)
        if state is not None:
            self.check_state(state, tokens.shape[0])
            if other := other_type(state, self.embedding.weight.dtype):
                raise WonderlandError(
                    f"The state of this Decoder holds {other} and its weights {self.embedding.weight.dtype}: "
                    "continue in the type that the state was made in."
                )
            state = plain(state)
        back = None
        if mask is not None:
            tokens, mask, back = align_left(tokens, mask)
        seen, inner = (None, None) if state is None else state
        h, inner = call_with_hooks(
            self.stack, self.embed(tokens, seen, mask), lambda h: self.stack.proceed(h, inner, mask)
        )
        new = tokens.shape[1] if mask is None else lengths(mask)
        if seen is None:
            seen = torch.zeros(tokens.shape[0], dtype=torch.int64, device=tokens.device)
        return (h if back is None else restore_order(h, back)), (seen + new, inner)

    def embed(self, tokens: Tensor, seen: Tensor | None, mask: Tensor | None) -> Tensor:
        """Token embeddings with positions added, 0 where masked."""
        if mask is not None:
            tokens = tokens.masked_fill(~mask, 0)
        h = self.look_up(tokens)
        if self.embed_scale != 1:
            h = h * self.embed_scale
        if self.position is not None:
            index = positions(h, seen)
            h = h + self.position.embed(index if mask is None else index.masked_fill(~mask, 0)).to(h.dtype)
        if self.embed_norm is not None:
            h = call_with_hooks(self.embed_norm, h, self.embed_norm.apply_to)
        if self.training and self.dropout:
            h = F.dropout(h, self.dropout)
        return hide(h, mask)

    def logits(self, h: Tensor) -> Tensor:
        """Features (..., dim) to a score for each token of the vocabulary."""
        y = F.linear(h, self.embedding.weight) if self.head is None else self.head(h)
        return y if self.logit_cap is None else self.logit_cap * torch.tanh(y / self.logit_cap)

    def look_up(self, tokens: Tensor) -> Tensor:
        """Token embeddings (b, t, dim)."""
        return call_with_hooks(self.embedding, tokens, lambda tokens: look_up(tokens, self.embedding.weight))

    def start(self, batch: Any) -> State:
        """The state before the first token, explicitly (`stream` takes None for it)."""
        check_batch(batch, "Decoder")
        weight = self.embedding.weight
        count = torch.zeros(batch, dtype=torch.int64, device=weight.device)
        return count, self.stack.start(batch, dtype=weight.dtype, device=weight.device)

    def state_layout(self) -> Layout:
        """The state without its batch."""
        return COUNT, self.stack.state_layout()

    def state_numbers(self, t: int) -> int:
        """The number of values in the state of one sequence after t tokens, without counts."""
        return self.stack.state_numbers(t)

    def costs(self, t: int = 1024) -> dict[str, int]:
        """The cost after t tokens: parameters, values in the state, multiply-adds of the next token.

        Multiply-adds are those of matrix products, and `kernel_multiply_adds(t)` of mixers whose step runs in a custom kernel.
        Elementwise operations are not counted.
        """
        return costs(self, t)

    def check(self, tokens: Any, mask: Tensor | None) -> None:
        """Refuse tokens or a mask that do not fit."""
        check_input(tokens, mask, "A Decoder")

    def check_range(self, tokens: Tensor) -> None:
        """Refuse tokens that are not in the vocabulary."""
        check_range(tokens, self.vocab)

    def check_state(self, state: Any, batch: int) -> None:
        """Refuse a state that this model did not make."""
        if fits(state, self.layout, batch):
            return
        if wrong := misfit(state, self.layout, batch):
            raise WonderlandError(
                f"The state does not fit this Decoder: {wrong}. "
                "A state belongs to the model and the batch that made it; state=None starts a new sequence."
            )


def _added_position(spec: Spec, dim: int) -> Position:
    """The position that is added to the embedding."""
    kind = spec.part
    if not (isinstance(kind, type) and issubclass(kind, Position)):
        raise WonderlandError(
            f"{spec.name} is not a position that can be added to an embedding: "
            "give nn.Learned.spec() or nn.Sinusoidal.spec()."
        )
    position = spec.build(dim=dim)
    if position.kind != "embed":
        raise WonderlandError(
            f"{spec.name} cannot be added to an embedding: put it into the mixer's spec, "
            f"as in nn.Attention.spec(position={spec.name}.spec())."
        )
    return position


def _attention(dim: int) -> Spec:
    """Attention with rotary positions: four heads, or fewer if their width would not be even."""
    if dim % 2:
        raise WonderlandError(
            f"The default mixer of a Decoder rotates pairs of features, so dim has to be even, not {dim}: "
            "choose another dim or give a mixer."
        )
    heads = next(heads for heads in (4, 3, 2, 1) if dim % (2 * heads) == 0)
    return Attention.spec(heads=heads, position=Rotary.spec())


def _channel(mixer: Any, channel: Spec | bool | None) -> Spec | None:
    """The channel mixer of a block with this token mixer."""
    if isinstance(channel, Spec):
        return channel
    kind = mixer.part if isinstance(mixer, Spec) else None
    if channel is False or (channel is None and getattr(kind, "alone", False)):
        return None
    return (getattr(kind, "companion", None) or MLP).spec()


def _layers(mixers: Any, norms: Any) -> list[tuple[Any, Any]]:
    """Mixer and norm of each layer, up to the layer after which both lists repeat together."""
    count = math.lcm(len(mixers), len(norms))
    if not 0 < count <= DEEPEST:
        raise WonderlandError(
            f"A Decoder repeats its mixers and norms together after 1 to {DEEPEST:,} layers, not {count:,}."
        )
    return [(mixers[index % len(mixers)], norms[index % len(norms)]) for index in range(count)]


def _not_causal(module: nn.Module) -> bool:
    return not isinstance(module, Block | Stack) and getattr(module, "causal", True) is False
