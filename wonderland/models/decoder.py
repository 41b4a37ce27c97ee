"""The decoder: tokens in, the next token's logits out, with any causal mixer inside."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.costs import costs
from wonderland.models.tokens import check_input, check_range, check_rows, look_up, take, to_the_left
from wonderland.nn.blocks.block import Block, Field
from wonderland.nn.blocks.stack import DEEPEST, Stack
from wonderland.nn.channel.mlp import MLP, chance
from wonderland.nn.contract.arguments import Checked, check_specs
from wonderland.nn.contract.hooks import heard
from wonderland.nn.contract.mixer import check_batch, hide, lengths, positions
from wonderland.nn.contract.state import COUNT, Layout, State, fits, may_consume, misfit, other_type, plain
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.positions import Learned, Position, Rotary
from wonderland.ops import steps
from wonderland.ops.walk import Walk


@part
class Decoder(Checked, nn.Module):
    r"""A language model: an embedding, a stack of blocks with any causal mixer, a head over the vocabulary.

    .. math:: h = E_{x} + s, \qquad h \leftarrow \mathrm{stack}(h), \qquad y = h\, W^\top

    `mixer` is the spec of what mixes tokens (attention with rotary positions by default), or a list of specs that is
    repeated over the layers. `channel` mixes features; None means an MLP, or the mixer's own companion (RWKV has one), or
    nothing if the mixer is a whole block in itself (`alone`, as Mamba is); False means none. `position` is added to the embedding; positions that rotate or bias
    belong into the mixer's spec. `placement` and `norm` are those of `Block`, `norm` may be a list too; `final_norm` ends
    the stack, like the others unless given, and `embed_norm` norms the embedding. With `tie` the head is the embedding.
    `embed_dropout` is that of the embedding, `dropout` unless given.

    `forward(tokens, mask)` takes all positions at once; the real tokens of a row may stand anywhere as long as they stand
    together, so padding may be left or right. `stream(tokens, state, mask)` continues after a state.

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
    ):
        super().__init__()
        if min(vocab, dim) < 1:
            raise WonderlandError(f"A Decoder needs at least one token and one feature, not vocab={vocab}, dim={dim}.")
        mixers = mixer if isinstance(mixer, list | tuple) else [_attention(dim) if mixer is None else mixer]
        rule = "The mixer of a Decoder is a spec such as nn.Mamba.spec(), or a list of specs"
        if not mixers:
            raise WonderlandError(f"{rule}, not an empty list.")
        check_specs(mixers, rule)
        if channel is not None and not isinstance(channel, bool):
            check_specs([channel], "The channel of a Decoder is a spec such as nn.MLP.spec(), None or False")
        norms = norm if isinstance(norm, list | tuple) else [norm]
        self.vocab, self.dim = vocab, dim
        self.dropout = chance(dropout if embed_dropout is None else embed_dropout, "Decoder")
        self.embedding = nn.Embedding(vocab, dim)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.position = None if position is None else _door(position, dim)
        blocks = [
            Block.spec(
                mixer=one,
                channel=_channel(one, channel),
                placement=placement,
                norm=kind,
                dropout=dropout,
                layer_scale=layer_scale,
                drop_path=drop_path,
            )
            for one, kind in _pattern(mixers, norms)
        ]
        last = norms[0] if final_norm is None else final_norm
        final: Spec | bool = last if last is not None and placement != "post" else True
        self.stack = Stack(dim, depth, blocks, norm=final)
        self.embed_norm = None if embed_norm is None else embed_norm.build(dim=dim)
        if not self.stack.causal:
            names = " or ".join(sorted({type(one).__name__ for one in self.stack.modules() if _sees_ahead(one)}))
            raise WonderlandError(
                f"A Decoder writes one token after another, and {names} looks ahead: give a causal mixer."
            )
        self.layout = self.state_layout()
        # A tied head has no weight of its own, so that a saved model holds the shared one once.
        self.head = None if tie else nn.Linear(dim, vocab, bias=False)
        if self.head is not None:
            nn.init.normal_(self.head.weight, std=0.02)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        # Tokens have no zero to be delayed by, and a position tells them apart.
        lost = (laws.shift_equivariance, *(() if self.position is None else (laws.permutation_equivariance,)))
        return tuple(law for law in self.stack.laws() if law not in lost)

    @property
    def receptive_field(self) -> Field | None:
        """How many tokens back an output reads, None for no limit; None where a block does not tell."""
        return self.stack.receptive_field

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.logits(self.features(tokens, mask))

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """`forward` before its head: what the model knows at each token, (b, t, dim), 0 where masked."""
        self.check(tokens, mask)
        if mask is None:
            return heard(self.stack, self.embed(tokens, None, None), lambda h: self.stack.whole(h, None))
        check_rows(mask, "Decoder")
        tokens, mask, back = to_the_left(tokens, mask)
        h = heard(self.stack, self.embed(tokens, None, mask), lambda h: self.stack.whole(h, mask))
        return h if back is None else take(h, back)

    def stream(self, tokens: Tensor, state: State | None = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Continue after `state` (None: at the beginning) with new tokens; returns logits and the next state."""
        if (found := self.step(tokens, state, mask)) is not None:
            return found
        h, state = self.proceed(tokens, state, mask)
        return self.logits(h), state

    def step(self, tokens: Any, state: Any, mask: Any) -> tuple[Tensor, State] | None:
        """One token of each row as one program of kernels; None where there is no such form."""
        if state is None or mask is not None or not isinstance(tokens, Tensor) or tokens.dim() != 2:
            return None
        rows, t = tokens.shape
        routine = self.routine(rows, t)
        if routine is None:
            return None
        if not routine.knows(state) or len(state[0]) != rows or tokens.dtype != torch.int64:
            self.check(tokens, mask)
            self.check_state(state, rows)
        position, at = self._modules.get("position"), None
        if position is not None and type(position) is not Learned:
            at = position.embed(state[0].unsqueeze(1)).to(routine.dtype).expand(rows, 1, self.dim).contiguous()  # pyright: ignore
        return routine.run(tokens.long(), state, (rows, 1, self.vocab), extra=at, consume=may_consume())

    def walk(self, state: Any) -> Walk | None:
        """Many single steps from a state on, each as fast as `step` is and more; None where there is no such form."""
        position = self._modules.get("position")
        if position is not None and type(position) is not Learned:
            return None
        rows = len(state[0])
        routine = self.routine(rows, 1)
        return None if routine is None else Walk.begin(routine, state, rows, self.vocab)

    def routine(self, rows: int, t: int) -> steps.Routine | None:
        """The program of one token, if these rows can take it now."""
        # Modules are read from their dictionaries: attributes go through Python, a microsecond each.
        table: Tensor = self._modules["embedding"]._parameters["weight"]  # pyright: ignore
        if not rows or not steps.fits(rows, t, table):
            return None
        return steps.routine(self, table.dtype, self.dim, self.plan)

    def plan(self, program: steps.Program) -> bool:
        """Write down one token of the whole model: embedding and position, the stack, the head."""
        embedding, position, stack, head, embed_norm = (
            program.look(self._modules, name) for name in ("embedding", "position", "stack", "head", "embed_norm")
        )
        table, learned = program.look(embedding._parameters, "weight"), None
        if type(position) is Learned:
            learned = program.look(position._parameters, "weight")
        length, first = 0 if learned is None else learned.shape[0], len(program.kinds)
        program.add(steps.EMBED, (table.shape[0], length, first), (table, learned))
        program.count("")
        if embed_norm is not None:
            if not embed_norm.branched(program):
                return False
            program.add(steps.BACK)
        if not program.rests(self, "dropout") or not program.reads(table) or not stack.planned(program):
            return False
        weight, bias = table, None
        if head is not None:
            if type(head) is not nn.Linear:
                return False
            weight, bias = (program.look(head._parameters, name) for name in ("weight", "bias"))
        program.add(steps.HEAD, (weight.shape[0], int(stack.normed)), (weight, bias))
        return program.reads(weight) and (learned is None or program.reads(learned))

    def proceed(self, tokens: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        """`stream` before its head: the features (b, t, dim) of new tokens, and the next state."""
        self.check(tokens, mask)
        if state is not None:
            self.check_state(state, tokens.shape[0])
            if other := other_type(state, self.embedding.weight.dtype):
                raise WonderlandError(
                    f"The state of this Decoder holds {other} and its weights {self.embedding.weight.dtype}: "
                    "go on in the type that the state was made in."
                )
            state = plain(state)
        back = None
        if mask is not None:
            tokens, mask, back = to_the_left(tokens, mask)
        seen, inner = (None, None) if state is None else state
        h, inner = heard(self.stack, self.embed(tokens, seen, mask), lambda h: self.stack.proceed(h, inner, mask))
        new = tokens.shape[1] if mask is None else lengths(mask)
        if seen is None:
            seen = torch.zeros(len(tokens), dtype=torch.int64, device=tokens.device)
        return (h if back is None else take(h, back)), (seen + new, inner)

    def embed(self, tokens: Tensor, seen: Tensor | None, mask: Tensor | None) -> Tensor:
        """Token vectors with their positions added, 0 where masked."""
        if mask is not None:
            tokens = tokens.masked_fill(~mask, 0)
        h = self.look_up(tokens)
        if self.position is not None:
            at = positions(h, seen)
            h = h + self.position.embed(at if mask is None else at.masked_fill(~mask, 0)).to(h.dtype)
        if self.embed_norm is not None:
            h = heard(self.embed_norm, h, self.embed_norm.apply_to)
        if self.training and self.dropout:
            h = F.dropout(h, self.dropout)
        return hide(h, mask)

    def logits(self, h: Tensor) -> Tensor:
        """Features (..., dim) to a score for each token of the vocabulary."""
        return F.linear(h, self.embedding.weight) if self.head is None else self.head(h)

    def look_up(self, tokens: Tensor) -> Tensor:
        return heard(self.embedding, tokens, lambda tokens: look_up(tokens, self.embedding.weight))

    def start(self, batch: Any) -> State:
        """The state before the first token, written out (`stream` takes None for it)."""
        check_batch(batch, "Decoder")
        weight = self.embedding.weight
        count = torch.zeros(batch, dtype=torch.int64, device=weight.device)
        return count, self.stack.start(batch, dtype=weight.dtype, device=weight.device)

    def state_layout(self) -> Layout:
        """The state without its batch."""
        return COUNT, self.stack.state_layout()

    def state_numbers(self, t: int) -> int:
        """How many numbers the state holds for one sequence after t tokens, counts not included."""
        return self.stack.state_numbers(t)

    def costs(self, t: int = 1024) -> dict[str, int]:
        """What the model costs once t tokens are read: parameters, numbers in the state, multiply-adds of the next token.

        Multiply-adds are counted in the matrix products of one step; a mixer whose step runs in a kernel of its own adds
        what its `kernel_multiply_adds(t)` says. Other elementwise work is not counted.
        """
        return costs(self, t)

    def check(self, tokens: Any, mask: Tensor | None) -> None:
        """Say what is wrong with tokens or a mask that do not fit."""
        check_input(tokens, mask, "A Decoder")

    def check_range(self, tokens: Tensor) -> None:
        """Say which token is not in the vocabulary."""
        check_range(tokens, self.vocab)

    def check_state(self, state: Any, batch: int) -> None:
        """Say what is wrong with a state that is not one of this model's."""
        if fits(state, self.layout, batch):
            return
        if wrong := misfit(state, self.layout, batch):
            raise WonderlandError(
                f"The state does not fit this Decoder: {wrong}. "
                "A state belongs to the model and the batch that made it; state=None starts anew."
            )


def _door(spec: Spec, dim: int) -> Position:
    kind = spec.part
    if not (isinstance(kind, type) and issubclass(kind, Position)):
        raise WonderlandError(
            f"{spec.name} is no position that can be added to an embedding: "
            "take nn.Learned.spec() or nn.Sinusoidal.spec()."
        )
    position = spec.build(dim=dim)
    if position.kind != "embed":
        raise WonderlandError(
            f"{spec.name} cannot be added to an embedding: put it into the mixer's spec, "
            f"as in nn.Attention.spec(position={spec.name}.spec())."
        )
    return position


def _attention(dim: int) -> Spec:
    """Attention with rotary positions: four heads, or fewer where their width would not be even."""
    if dim % 2:
        raise WonderlandError(
            f"The attention that a Decoder has by default turns pairs of features, so dim is even, not {dim}: "
            "choose another dim or give a mixer."
        )
    heads = next(heads for heads in (4, 3, 2, 1) if dim % (2 * heads) == 0)
    return Attention.spec(heads=heads, position=Rotary.spec())


def _channel(mixer: Any, channel: Spec | bool | None) -> Spec | None:
    if isinstance(channel, Spec):
        return channel
    kind = mixer.part if isinstance(mixer, Spec) else None
    if channel is False or (channel is None and getattr(kind, "alone", False)):
        return None
    return (getattr(kind, "companion", None) or MLP).spec()


def _pattern(mixers: Any, norms: Any) -> list[tuple[Any, Any]]:
    """What each layer has, until both lists begin anew together."""
    count = math.lcm(len(mixers), len(norms))
    if not 0 < count <= DEEPEST:
        raise WonderlandError(
            f"A Decoder repeats its mixers and norms together after 1 to {DEEPEST:,} layers, not {count:,}."
        )
    return [(mixers[index % len(mixers)], norms[index % len(norms)]) for index in range(count)]


def _sees_ahead(module: nn.Module) -> bool:
    return not isinstance(module, Block | Stack) and getattr(module, "causal", True) is False
