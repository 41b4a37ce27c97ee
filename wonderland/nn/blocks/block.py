"""The block: any token mixer and any channel mixer on one residual stream."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, nearest, part
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract import fast_path
from wonderland.nn.contract.arguments import described
from wonderland.nn.contract.cross_mixer import CrossMixer, check_same_rows
from wonderland.nn.contract.hooks import call_with_hooks
from wonderland.nn.contract.mixer import Mixer, Pointwise, hide
from wonderland.nn.contract.state import Layout, State
from wonderland.nn.norms.norm import LayerNorm

PLACEMENTS = ("pre", "post", "parallel", "parallel_each", "branch", "sandwich")
Call = Callable[[Any, int, Tensor], Tensor]
Field = tuple[int | None, int | None]


@part
class Block(Mixer):
    r"""A transformer block with any mixers in its slots, one residual branch for each.

    .. math::
        \text{pre:}\quad & h \leftarrow h + m(\mathrm{norm}(h)) \quad \text{for each mixer } m \\
        \text{post:}\quad & h \leftarrow \mathrm{norm}(h + m(h)) \\
        \text{parallel:}\quad & h \leftarrow h + \sum_m m(\mathrm{norm}(h)) \\
        \text{parallel\_each:}\quad & h \leftarrow h + \sum_m m(\mathrm{norm}_m(h)) \\
        \text{branch:}\quad & h \leftarrow h + \mathrm{norm}(m(h)) \\
        \text{sandwich:}\quad & h \leftarrow h + \mathrm{norm}'(m(\mathrm{norm}(h)))

    `mixer` mixes tokens, `channel` (None for none) features; both are specs of mixers and built for this block alone.
    Tokens are mixed first, or last with `first="channel"`, as the book writes the MLP-Mixer. `placement` says where the
    norm stands: "pre" (default; trains more easily), "post" (the original transformer), "parallel" (one norm) and "parallel_each" (one for each mixer, GPT-NeoX), "branch"
    (OLMo 2), "sandwich" (Gemma 2: the norms before come first in `norms`, then those after); `norm` is its kind, or a list
    with one for each norm of the block, in their order.
    `layer_scale` multiplies each branch by a trained vector that begins at this number; `dropout` drops features of the
    branches and `drop_path` whole branches, row by row, both in training only.

    With `cross`, the spec of a cross mixer, the block also reads a context after the token mixer:
    `forward(x, mask, context, context_mask)`, or `stream` from the state that `prepare(context, context_mask)` gives.

    Shapes: x (b, t, dim) -> (b, t, dim); state: a tuple of the slots' states, in the order they are applied.
    Book: Alice 10.3 and 11.3 (MetaFormer). Papers: Vaswani et al., 2017; Xiong et al., 2020; Yu et al., 2022.

    >>> from wonderland.nn.channel.mlp import MLP
    >>> from wonderland.nn.mixers.shift import Shift
    >>> block = Block(8, mixer=Shift.spec(), channel=MLP.spec(expansion=2))
    >>> block(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    takes_specs = True

    def __init__(
        self,
        dim: int,
        mixer: Any,
        *,
        channel: Any = None,
        cross: Any = None,
        placement: str = "pre",
        norm: Spec | list[Spec] | None = None,
        first: str = "mixer",
        layer_scale: float | int | None = None,
        dropout: float | int = 0.0,
        drop_path: float | int = 0.0,
    ):
        super().__init__()
        if placement not in PLACEMENTS:
            raise WonderlandError(
                f"A norm stands {', '.join(map(repr, PLACEMENTS))}, not {placement!r}.{nearest(placement, PLACEMENTS)}"
            )
        if first not in ("mixer", "channel"):
            raise WonderlandError(f"The slot that comes first is 'mixer' or 'channel', not {first!r}.")
        self.dim, self.placement = dim, placement
        self.dropout, self.drop_path = chance(dropout, "Block"), chance(drop_path, "Block")
        self.mixer = build_slot(mixer, dim, "mixer", Mixer)
        self.cross = None if cross is None else build_slot(cross, dim, "cross", CrossMixer)
        self.channel = None if channel is None else build_slot(channel, dim, "channel", Mixer)
        slots = ["mixer", *(["cross"] if cross is not None else []), *(["channel"] if channel is not None else [])]
        if first == "channel" and channel is not None:
            slots = [slots[-1], *slots[:-1]]
        self.slots = tuple(slots)
        normed = {"parallel": slots[:1], "sandwich": [*slots, *slots]}.get(placement, slots)
        norms = norm if isinstance(norm, list | tuple) else [LayerNorm.spec() if norm is None else norm] * len(normed)
        if len(norms) != len(normed):
            raise WonderlandError(
                f"A list of norms has one spec for each of the norms of this Block, {len(normed)}, not {len(norms)}."
            )
        self.norms: Any = nn.ModuleList(build_norm(spec, dim) for spec in norms)
        self.scales = None
        if layer_scale is not None:
            self.scales = Scales(nn.Parameter(torch.full((dim,), float(layer_scale))) for _ in slots)
        self.causal = all(part.causal for part in self.parts() if isinstance(part, Mixer))

    def parts(self) -> list[Any]:
        """The mixers in the slots, in the order they are applied."""
        return [getattr(self, slot) for slot in self.slots]

    def laws(self) -> tuple[Callable[..., Any], ...]:
        return shared_laws(
            [*(part for part in self.parts() if isinstance(part, Mixer)), *self.norms], self.receptive_field
        )

    @property
    def receptive_field(self) -> Field | None:
        """How many tokens to the left and right an output reads, None for no limit; None where a slot does not tell."""
        mixers = [part for part in self.parts() if isinstance(part, Mixer)]
        return joint_field(mixers, max if self.placement.startswith("parallel") else sum)

    def state_layout(self) -> Layout:
        return tuple(part.state_layout() for part in self.parts())

    def read(self, context: Any, context_mask: Any) -> State | None:
        """The context prepared for `whole`; None where there is no cross mixer."""
        if self.cross is None:
            if context is not None or context_mask is not None:
                raise WonderlandError(
                    "This Block has no cross mixer, so it reads no context: leave it out or give cross."
                )
            return None
        if context is None:
            raise WonderlandError(
                "This Block has a cross mixer: give forward a context, or stream from prepare(context)."
            )
        return self.cross.prepare(context, context_mask)

    def prepare(self, context: Any, context_mask: Any = None) -> State:
        """The state before the first token with the context in it, for `stream`."""
        read = self.read(context, context_mask)
        batch = {"batch": context.shape[0], "dtype": context.dtype, "device": context.device}
        return tuple(part.start(**batch) if isinstance(part, Mixer) else read for part in self.parts())

    def forward(self, x: Tensor, mask: Tensor | None = None, context: Any = None, context_mask: Any = None) -> Tensor:
        if self.cross is None and context is None and context_mask is None:
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
        def call(part: Any, index: int, h: Tensor) -> Tensor:
            return part.whole(h, mask) if self.slots[index] != "cross" else part.proceed(h, context, mask)

        return self._run(x, mask, call, fuse=mask is None)

    def proceed(self, x: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        if (stepped := fast_path.step(self, x, state, mask)) is not None:
            return stepped
        after: list[Any] = []

        def call(part: Any, index: int, h: Tensor) -> Tensor:
            own = None if state is None else state[index]
            if self.slots[index] == "cross":
                y = part.proceed(h, own, mask)
            else:
                y, own = part.proceed(h, own, mask)
            after.append(own)
            return y

        return self._run(x, mask, call), tuple(after)

    def _run(self, x: Tensor, mask: Tensor | None, call: Call, *, fuse: bool = False) -> Tensor:
        """The residual stream through the slots; `call` applies a mixer, to the whole sequence or from its state.

        `fuse` allows a slot to be one kernel with its norm and its sum, where there is one.
        """
        parts = self.parts()

        def normed(index: int, h: Tensor) -> Tensor:
            norm = self.norms[index]
            return call_with_hooks(norm, h, lambda h: norm.among(h, mask))

        def mixed(index: int, h: Tensor) -> Tensor:
            return self._regularised(self._applied(parts, index, h, call), index)

        # Mixers return 0 at masked positions, so a stream that enters with 0 there keeps it.
        x = hide(x, mask)
        if self.placement == "parallel":
            h = normed(0, x)
            for index in range(len(parts)):
                x = x + mixed(index, h)
        elif self.placement == "parallel_each":
            h = x
            for index in range(len(parts)):
                x = x + mixed(index, normed(index, h))
        elif self.placement in ("branch", "sandwich"):
            first = len(parts) if self.placement == "sandwich" else 0
            for index in range(len(parts)):
                h = normed(index, x) if first else x
                x = x + hide(
                    self._regularised(normed(first + index, self._applied(parts, index, h, call)), index), mask
                )
        elif self.placement == "pre":
            fuse = fuse and self.scales is None and not (self.training and (self.dropout or self.drop_path))
            for index, part in enumerate(parts):
                fused = fast_path.residual_block(part, self.norms[index], x) if fuse else None
                x = x + mixed(index, normed(index, x)) if fused is None else fused
        else:
            for index in range(len(parts)):
                x = normed(index, x + mixed(index, x))
            x = hide(x, mask)
        return x

    def _applied(self, parts: list[Any], index: int, h: Tensor, call: Call) -> Tensor:
        return call_with_hooks(parts[index], h, lambda h: call(parts[index], index, h))

    def _regularised(self, y: Tensor, index: int) -> Tensor:
        """The output of a slot with layer scale, dropout and stochastic depth."""
        if self.scales is not None:
            y = y * self.scales[index]
        if self.training and self.dropout:
            y = F.dropout(y, self.dropout)
        if self.training and self.drop_path:
            kept = torch.rand(y.shape[0], 1, 1, device=y.device) >= self.drop_path
            y = y * (kept.to(y.dtype) / (1 - self.drop_path))
        return y


class Scales(nn.ParameterList):
    """The trained vectors of `layer_scale`, which weight decay spares."""

    @property
    def no_decay(self) -> frozenset[str]:
        """The names of the parameters to spare."""
        return frozenset(str(index) for index in range(len(self)))


def build_slot(spec: Any, dim: int, name: str, kind: type[Any]) -> Any:
    """The module of a slot, built from its spec."""
    if not isinstance(spec, Spec):
        raise WonderlandError(
            f"The {name} of a block is a spec such as nn.MLP.spec(), which is built once a layer, not {described(spec)}."
        )
    built = spec.build(dim=dim)
    if not isinstance(built, kind):
        raise WonderlandError(f"{spec.name} is no {kind.__name__}, so it cannot be the {name} of a block.")
    return built


def build_norm(spec: Spec, dim: int) -> Any:
    """A norm, or another pointwise module, built from its spec."""
    built = spec.build(dim=dim)
    if not isinstance(built, Pointwise):
        raise WonderlandError(
            f"{spec.name} looks at more than one token or keeps no width, so it cannot be a norm: "
            "take nn.LayerNorm.spec(), nn.RMSNorm.spec() or the like."
        )
    return built


def shared_laws(parts: list[Any], field: Field | None) -> tuple[Callable[..., Any], ...]:
    """The laws that hold for parts applied one after another, because they hold for each part and under composition."""
    from wonderland import laws

    claims = [part.laws() for part in parts]
    lost = [laws.scale_invariance, laws.permutation_invariance] if len(parts) > 1 else []
    # After a bias, zeros before a sequence are no longer zeros; only mixers with a limited left context can be checked then.
    if len(parts) > 1 and (field is None or field[0] is None):
        lost.append(laws.shift_equivariance)
    return tuple(law for law in claims[0] if law not in lost and all(law in claimed for claimed in claims[1:]))


def joint_field(parts: list[Any], join: Callable[[Any], Any]) -> Field | None:
    """The receptive field of parts applied together; None where one tells none, a side None where it has no limit."""
    fields = [field for field in (getattr(part, "receptive_field", None) for part in parts) if field is not None]
    if len(fields) < len(parts):
        return None
    left, right = ([field[side] for field in fields] for side in (0, 1))
    return None if None in left else join(left), None if None in right else join(right)
