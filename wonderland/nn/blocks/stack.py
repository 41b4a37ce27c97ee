"""The stack: blocks one after another, alike or in a repeating pattern, as one mixer."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.blocks.block import Block, Field, build_norm, joint_field, shared_laws
from wonderland.nn.contract import fast_path
from wonderland.nn.contract.arguments import check_specs, described
from wonderland.nn.contract.cross_mixer import check_same_rows
from wonderland.nn.contract.hooks import call_with_hooks
from wonderland.nn.contract.mixer import Mixer, hide
from wonderland.nn.contract.state import Layout, State
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Position

DEEPEST = 10_000  # a saved description asks for as many blocks as it likes; each costs memory before any weight does


@part
class Stack(Mixer):
    """`depth` blocks, each built anew from its spec; a list of specs is repeated until the depth is reached.

    Blocks may be any mixers, so a deep recurrent network is a stack too. Blocks with the norm before each slot leave the
    stream unnormed at the end, so a final `norm` follows: True means a LayerNorm exactly there, False none, a spec that
    one in any case. `position` is one bias for all blocks that have an attention (T5), kept by the stack.

    Where blocks have a cross mixer, `forward` takes a context and its mask, and `prepare(context)` gives the state to
    stream from. Shapes: x (b, t, dim) -> (b, t, dim); state: a tuple of the blocks' states. Book: Alice 10.3.

    >>> import torch
    >>> from wonderland.nn.channel.mlp import MLP
    >>> from wonderland.nn.mixers.shift import Shift
    >>> stack = Stack(8, 3, [Block.spec(mixer=Shift.spec(), channel=MLP.spec()), MLP.spec()])
    >>> [type(block).__name__ for block in stack.blocks]
    ['Block', 'MLP', 'Block']
    """

    takes_specs = True

    def __init__(self, dim: int, depth: int, block: Any, *, norm: Any = True, position: Spec | None = None):
        super().__init__()
        pattern = list(block) if isinstance(block, list | tuple) else [block]
        if depth > DEEPEST:
            raise WonderlandError(f"A stack has at most {DEEPEST:,} blocks, not {depth:,}.")
        if depth < 1 or not pattern:
            raise WonderlandError("A stack needs a depth of at least 1 and the spec of a block, or a list of specs.")
        check_specs(pattern, "The blocks of a stack are a spec such as nn.MLP.spec(), or a list of specs")
        self.dim = dim
        self.blocks: Any = nn.ModuleList(pattern[index % len(pattern)].build(dim=dim) for index in range(depth))
        for spec, built in zip(pattern, self.blocks, strict=False):
            if not isinstance(built, Mixer):
                raise WonderlandError(f"{spec.name} is no mixer, so it cannot stand in a stack.")
        last = self.blocks[-1]
        if norm is True:
            norm = LayerNorm.spec() if isinstance(last, Block) and last.placement != "post" else False
        if not isinstance(norm, Spec | bool):
            raise WonderlandError(
                f"The norm of a stack is True, False or a spec such as nn.RMSNorm.spec(), not {described(norm)}."
            )
        self.norm = build_norm(norm, dim) if isinstance(norm, Spec) else None
        self.position = None if position is None else _shared(position, self.blocks)
        self.causal = all(block.causal for block in self.blocks)
        self.crossing = any(_crosses(block) for block in self.blocks)

    @property
    def applied(self) -> Any:
        """The blocks in the order in which they are applied."""
        return self.blocks

    def laws(self) -> tuple[Callable[..., Any], ...]:
        return shared_laws([*self.applied, *([] if self.norm is None else [self.norm])], self.receptive_field)

    @property
    def receptive_field(self) -> Field | None:
        """How many tokens to the left and right an output reads, None for no limit; None where a block does not tell."""
        return joint_field(list(self.applied), sum)

    def state_layout(self) -> Layout:
        return tuple(block.state_layout() for block in self.applied)

    def read(self, context: Any, context_mask: Any) -> State | None:
        """The context prepared for each block that reads one; None where there is none."""
        if not self.crossing:
            if context is not None or context_mask is not None:
                raise WonderlandError("No block of this Stack has a cross mixer, so it reads no context: leave it out.")
            return None
        if context is None:
            raise WonderlandError(
                "This Stack has cross mixers: give forward a context, or stream from prepare(context)."
            )
        return tuple(block.read(context, context_mask) if _crosses(block) else None for block in self.applied)

    def prepare(self, context: Any, context_mask: Any = None) -> State:
        """The state before the first token with the context in it, for `stream`."""
        self.read(context, context_mask)
        batch = {"batch": context.shape[0], "dtype": context.dtype, "device": context.device}
        return tuple(
            block.prepare(context, context_mask) if _crosses(block) else block.start(**batch) for block in self.applied
        )

    def forward(self, x: Tensor, mask: Tensor | None = None, context: Any = None, context_mask: Any = None) -> Tensor:
        if not self.crossing and context is None and context_mask is None:
            return super().forward(x, mask)
        self.check(x, mask)
        self.check_rows(mask)
        read = self.read(context, context_mask)
        assert context is not None
        check_same_rows(x, context)
        return self.whole(x, mask, read)

    def stream(self, x: Tensor, state: State | None = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if state is None:
            self.read(None, None)
        return super().stream(x, state, mask)

    def whole(self, x: Tensor, mask: Tensor | None, context: State | None = None) -> Tensor:
        for index, block in enumerate(self.applied):
            read = () if context is None or context[index] is None else (context[index],)
            x = call_with_hooks(block, x, lambda h, block=block, read=read: block.whole(h, mask, *read))
        return self._end(x, mask)

    def _end(self, x: Tensor, mask: Tensor | None) -> Tensor:
        norm = self.norm
        return x if norm is None else hide(call_with_hooks(norm, x, lambda h: norm.among(h, mask)), mask)

    def proceed(self, x: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        if (stepped := fast_path.step(self, x, state, mask)) is not None:
            return stepped
        after: list[State] = []
        for index, block in enumerate(self.applied):
            own = None if state is None else state[index]
            x, own = call_with_hooks(block, x, lambda h, block=block, own=own: block.proceed(h, own, mask))
            after.append(own)
        return self._end(x, mask), tuple(after)


def _crosses(block: Any) -> bool:
    return getattr(block, "cross", None) is not None


def _shared(spec: Spec, blocks: Any) -> Position:
    position = None
    for block in blocks:
        mixer = getattr(block, "mixer", block)
        if isinstance(mixer, Attention):
            position = mixer.share(spec, position)
    if position is None:
        raise WonderlandError(f"No block of this Stack has an attention that {spec.name} could be shared by.")
    return position
