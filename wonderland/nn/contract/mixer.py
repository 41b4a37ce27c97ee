"""The contract of sequence mixers: the whole sequence at once, or piece after piece from a state, with one result."""

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract import fast_path
from wonderland.nn.contract.arguments import Checked, described
from wonderland.nn.contract.nonfinite import mask_nonfinite, restore_nonfinite, restore_state
from wonderland.nn.contract.state import (
    Layout,
    State,
    count_of,
    fill,
    fits,
    misfit,
    other_device,
    other_type,
    plain,
    product,
    signed,
    slots,
)


class Missing:
    """A descriptor for attributes that a constructor has to set: reading one that was not set raises a sentence."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            raise AttributeError(self.name)
        raise WonderlandError(
            f"{owner.__name__} has no {self.name}: its __init__ sets it, as in self.{self.name} = {self.name}."
        )


class Mixer(Checked, nn.Module):
    """A module that mixes tokens and keeps their number: (b, t, dim) -> (b, t, dim).

    A mixer writes one method, `mix`, and describes its state with `layout`; a pointwise one derives from `Pointwise`, one
    made of others overrides `proceed`. All the rest is here: a call checks what it was given and says what is wrong, hides
    masked positions (they may hold NaN, output 0, leave the state unchanged), and counts the real tokens seen.

    `forward(x, mask)` takes all positions at once. `stream(x, state, mask)` continues after `state` with one or more new
    positions and returns the outputs and the next state; any cutting of a sequence gives the outputs of the whole. A state
    is never written to, so it can be continued twice, unless the caller says so with `consuming`.

    `mask` is (b, t), True where a token is real; real tokens come first in each row.
    """

    causal: bool = True
    # Whether `mix` multiplies tokens that an output must not see by 0 instead of leaving them out, as attention kernels do.
    weighs_unseen: bool = False
    dim: int = Missing()  # pyright: ignore[reportAssignmentType]

    if not TYPE_CHECKING:  # a type checker reads the constructor's signature from __init__ alone

        def __new__(cls, *args: Any, **named: Any):
            dim = named.get("dim", args[0] if args else 1)
            if not isinstance(dim, Integral) or isinstance(dim, bool) or dim < 1:
                raise WonderlandError(
                    f"{cls.__name__} needs a dim, the width of its tokens, of at least 1, not {described(dim)}."
                )
            return super().__new__(cls, *args, **named)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        always = (laws.batch_independence, laws.padding_invariance, laws.gradients, laws.determinism, laws.save_load)
        # What sees itself alone, or nothing ahead, keeps to causality without being able to stream.
        field = None if self.causal else getattr(self, "receptive_field", None)
        backwards = (laws.causality,) if field is not None and field[1] == 0 else ()
        first = (laws.causality, laws.streaming) if self.causal else backwards
        return first + always + (laws.finiteness, laws.compiles)

    def signature(self) -> str:
        """What states are signed with: the kind of module that made them, and what else they depend on but do not show."""
        return type(self).__name__

    def layout(self) -> Layout:
        """The state without its batch: a nested tuple of slots. The count of tokens seen is added by the contract."""
        return ()

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        """The equation. Masked positions of `x` hold 0; what is returned there is not used, but must not enter the state.

        `state` is None at the start, else as `layout` says; `seen` (b,) counts the tokens before this piece, None for none.
        A mixer that is not causal is only ever called with both None, and returns the state ().
        """
        raise NotImplementedError

    def whole(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """All positions at once, unchecked, for mixers made of mixers; overridden where no state has to be made."""
        return self.proceed(x, None, mask)[0]

    def proceed(self, x: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        """`stream` without its checks, for mixers made of mixers."""
        if (stepped := fast_path.step(self, x, state, mask)) is not None:
            return stepped
        own, seen = (None, None) if state is None else (state[:-1], state[-1])
        case = (own is None, mask is None, x.shape[0])
        y, own = self.mix_finite(x, mask, seen, lambda x: check_mixed(self, self.mix(x, own, seen, mask), x, case))
        return y, (*own, signed(_count(x, seen, mask), self.signature())) if self.causal else ()

    def mix_finite(
        self, x: Tensor, mask: Tensor | None, seen: Tensor | None, mix: Callable[[Tensor], tuple[Tensor, State]]
    ) -> tuple[Tensor, State]:
        """`mix` of an input with 0 at masked positions and, if the mixer weighs what is unseen, in tokens that are not
        finite; outputs are 0 where masked and NaN where they see such a token, and so is the state."""
        x = hide(x, mask)
        if not (self.causal and self.weighs_unseen):
            y, state = mix(x)
            return hide(y, mask), state
        x, nonfinite = mask_nonfinite(x)
        y, state = mix(x)
        if nonfinite is None:
            return hide(y, mask), state
        field = getattr(self, "receptive_field", None)
        window = None if field is None or field[0] is None else field[0] + 1
        return hide(restore_nonfinite(y, nonfinite, window), mask), restore_state(state, nonfinite, seen)

    # Anything may be handed in here: what does not fit meets a sentence, so the signature stays open.
    def forward(self, x: Any, mask: Any = None) -> Tensor:
        self.check(x, mask)
        self.check_rows(mask)
        return self.whole(x, mask)

    def stream(self, x: Any, state: Any = None, mask: Any = None) -> tuple[Tensor, State]:
        """Continue after `state` (None: at the beginning) with new positions; returns outputs and the next state."""
        if not self.causal:
            raise WonderlandError(
                f"This {type(self).__name__} is not causal, so it cannot stream: call it on the whole sequence."
            )
        if (stepped := fast_path.next_step(self, x, state, mask)) is not None:
            return stepped
        self.check(x, mask)
        if state is not None:
            self.check_state(state, x.shape[0])
            if other := other_type(state, x.dtype):
                raise WonderlandError(
                    f"The state of this {type(self).__name__} holds {other} and the input {x.dtype}: "
                    "go on in the type that the state was made in."
                )
            if (other := other_device(state, x.device)) is not None:
                raise WonderlandError(
                    f"The state of this {type(self).__name__} is on {other} and the input on {x.device}: "
                    "move one of them with .to()."
                )
            state = plain(state)
        return self.proceed(x, state, mask)

    def start(self, batch: Any, *, dtype: torch.dtype | None = None, device: Any = None) -> State:
        """The state before the first token, written out (`stream` takes None for it)."""
        check_batch(batch, type(self).__name__)
        like = next(self.parameters(), torch.empty(0))
        return fill(self.state_layout(), batch, dtype or like.dtype, device or like.device)

    def state_layout(self) -> Layout:
        """The whole state's layout: that of `layout`, with the count of tokens."""
        return (*self.layout(), count_of(self.signature()))

    def state_numbers(self, t: int) -> int:
        """How many numbers the state holds for one sequence after t tokens, the count not included."""
        return sum(product(slot.sizes, t) for slot in slots(self.state_layout()) if slot.dtype is None)

    def check(self, x: Any, mask: Any) -> None:
        """Say what is wrong with an input that does not fit."""
        name = type(self).__name__
        check_features(x, self.dim, name, next(self.parameters(), None))
        check_mask(mask, x, name)

    def check_rows(self, mask: Tensor | None) -> None:
        """Say which row of a whole sequence has nothing in it; pieces of a stream may have none."""
        check_rows(mask, type(self).__name__)

    def check_state(self, state: Any, batch: int) -> None:
        """Say what is wrong with a state that is not one of this module's."""
        if torch.compiler.is_compiling():
            return
        layout = self.state_layout()
        if not fits(state, layout, batch) and (wrong := misfit(state, layout, batch)):
            raise WonderlandError(
                f"The state does not fit this {type(self).__name__}: {wrong}. "
                "A state belongs to the module and the batch that made it; state=None starts anew."
            )


class Pointwise(Mixer):
    """A mixer that looks at each position alone: it mixes channels, and its state is ().

    It takes features with any number of axes, (..., dim) -> (..., dim); a mask goes with (b, t, dim) only.
    """

    receptive_field = (0, 0)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        alike = (laws.permutation_equivariance, laws.shift_equivariance)
        return (*super().laws(), laws.strict_causality, *alike, laws.locality)

    def state_layout(self) -> Layout:
        return ()

    def check(self, x: Any, mask: Any) -> None:
        check_pointwise(x, self.dim, mask, type(self).__name__, next(self.parameters(), None))

    def apply_to(self, x: Tensor) -> Tensor:
        """The equation at each position."""
        raise NotImplementedError

    def among(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """`apply_to` where masked positions hold 0; overridden where the others must know which these are."""
        return self.apply_to(x)

    def proceed(self, x: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        y = self.apply_to(hide(x, mask))
        if y.shape != x.shape:
            raise WonderlandError(wrong_outputs(f"{type(self).__name__}.apply_to", y, x))
        return hide(y, mask), ()


def hide(x: Tensor, mask: Tensor | None) -> Tensor:
    """`x` with 0 at masked positions."""
    return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0)


def positions(x: Tensor, seen: Tensor | None) -> Tensor:
    """Where the tokens of a piece stand: (b, t) after `seen` tokens, or (1, t) at the beginning."""
    here = torch.arange(x.shape[1], device=x.device)
    return here.unsqueeze(0) if seen is None else seen.unsqueeze(1) + here


def lengths(mask: Tensor) -> Tensor:
    """How many real tokens each row has: (b,)."""
    return mask.sum(1)


def check_features(x: Any, dim: int, name: str, like: Tensor | None = None) -> None:
    """Say what is wrong with features that do not fit, or are of another type than the weight `like`."""
    if not isinstance(x, Tensor) or x.dim() != 3 or x.shape[2] != dim or 0 in x.shape:
        given = f"of shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"of type {type(x).__name__}"
        raise WonderlandError(
            f"{name} takes a tensor (batch, time, {dim}) with at least one row and one position, not one {given}."
        )
    check_numbers(x, name, like)


def check_pointwise(x: Any, dim: int, mask: Any, name: str, like: Tensor | None = None) -> None:
    """Say what is wrong with features (..., dim), or with a mask, which goes with (batch, time, dim) only."""
    if not isinstance(x, Tensor) or x.dim() < 1 or x.shape[-1] != dim or 0 in x.shape:
        given = f"of shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"of type {type(x).__name__}"
        raise WonderlandError(f"{name} takes a tensor (..., {dim}) with at least one row, not one {given}.")
    check_numbers(x, name, like)
    if mask is not None and x.dim() != 3:
        raise WonderlandError(
            f"{name} takes a mask with tokens (batch, time, {dim}) only, and this input has shape {tuple(x.shape)}."
        )
    check_mask(mask, x, name)


def check_numbers(x: Tensor, name: str, like: Tensor | None = None) -> None:
    """Say what is wrong with the type, layout or device of features."""
    if not x.is_floating_point():
        raise WonderlandError(f"{name} takes floating point features, not {x.dtype}: embed tokens first.")
    if x.layout is not torch.strided:
        raise WonderlandError(f"{name} takes dense features, not {x.layout}: call .to_dense() on them.")
    if like is not None and like.device != x.device:
        raise WonderlandError(
            f"{name} has its weights on {like.device} and got features on {x.device}: move one of them with .to()."
        )
    if like is not None and like.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
        raise WonderlandError(
            f"{name} has weights of {like.dtype} and got features of {x.dtype}: convert one of them with .to()."
        )


def check_rows(mask: Tensor | None, name: str) -> None:
    """Say which row of a whole sequence has nothing in it."""
    if mask is not None and not torch.compiler.is_compiling() and not mask.is_meta and not mask[:, 0].all():
        row = int((~mask[:, 0]).nonzero()[0])
        raise WonderlandError(
            f"{name} got a mask whose row {row} has no real token: leave empty sequences out of the batch."
        )


def check_mask(mask: Any, x: Tensor, name: str) -> None:
    """Say what is wrong with a mask of features: its kind, or real tokens that do not come first."""
    if mask is None:
        return
    check_booleans(mask, x, name)
    if torch.compiler.is_compiling() or mask.is_meta:
        return
    late = (mask[:, 1:] & ~mask[:, :-1]).any(1)
    if late.any():
        row = int(late.nonzero()[0])
        raise WonderlandError(
            f"{name} got a mask whose row {row} has a real token after a hidden one: put padding at the right end."
        )


def check_booleans(mask: Any, x: Tensor, name: str) -> None:
    """Say what is wrong with the type, shape, layout or device of a mask for x (batch, time, ...)."""
    batch, length = x.shape[:2]
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != (batch, length):
        given = f"{mask.dtype} {tuple(mask.shape)}" if isinstance(mask, Tensor) else type(mask).__name__
        raise WonderlandError(
            f"{name} takes a mask of booleans ({batch}, {length}), True where a token is real, not {given}."
        )
    if mask.layout is not torch.strided:
        raise WonderlandError(f"{name} takes a dense mask, not {mask.layout}: call .to_dense() on it.")
    if mask.device != x.device:
        raise WonderlandError(
            f"{name} got its input on {x.device} and a mask on {mask.device}: move one of them with .to()."
        )


def check_mixed(mixer: Mixer, mixed: Any, x: Tensor, case: tuple[bool, bool, int]) -> tuple[Tensor, State]:
    """What `mix` returned, which must be outputs of the shape of its input, and a state as `layout` describes it.

    The state is looked at once for each `case` of a call: with a state or without, with a mask or without, and so many rows.
    """
    if torch.compiler.is_compiling():
        return mixed
    name = f"{type(mixer).__name__}.mix"
    if not isinstance(mixed, tuple) or len(mixed) != 2:
        given = f"a tuple of {len(mixed)}" if isinstance(mixed, tuple) else f"a {type(mixed).__name__}"
        raise WonderlandError(f"{name} returns its outputs and its state, as in `return y, (h,)`, not {given}.")
    y, state = mixed
    if not isinstance(y, Tensor) or y.shape != x.shape:
        raise WonderlandError(wrong_outputs(name, y, x))
    checked = mixer.__dict__.setdefault("_checked_cases", set())
    if case not in checked:
        layout = mixer.layout() if mixer.causal else ()
        if not fits(state, layout, x.shape[0]) and (wrong := misfit(state, layout, x.shape[0], subject="its state")):
            raise WonderlandError(f"{name} returns a state that its layout does not describe: {wrong}.")
        checked.add(case)
    return y, state


def wrong_outputs(name: str, y: Any, x: Tensor) -> str:
    """The sentence for outputs that are not of the shape of the input."""
    given = f"of shape {tuple(y.shape)}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
    return f"{name} returns outputs of the shape of its input, {tuple(x.shape)}, not {given}."


def check_batch(batch: Any, name: str) -> None:
    """Say so when a state is asked for no whole number of rows."""
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        raise WonderlandError(f"{name} starts a state for a whole number of rows from 1, not {batch!r}.")


def _count(x: Tensor, seen: Tensor | None, mask: Tensor | None) -> Tensor:
    if mask is None:
        return seen + x.shape[1] if seen is not None else torch.full((x.shape[0],), x.shape[1], device=x.device)
    return lengths(mask) if seen is None else seen + lengths(mask)
