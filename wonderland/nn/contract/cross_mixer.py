"""The contract of cross mixers: one sequence reads another, which is prepared once and read as often as needed."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import Missing, check_features, check_mask, hide
from wonderland.nn.contract.state import Layout, State, misfit, other_device, other_type


class CrossMixer(Checked, nn.Module):
    """A module in which the tokens of x read a context: (b, t, dim) and (b, m, context_dim) -> (b, t, dim).

    A cross mixer writes two methods: `read` turns the context into a state, `answer` computes what each
    position of x takes from that state. `forward(x, context, mask, context_mask)` is `stream(x, prepare(context, context_mask), mask)`.

    The state never changes, so `stream` returns the outputs alone, and x may come in any pieces. Masks are True where a
    token is real, real tokens first; masked positions of x and of the context are never read, and output 0.
    """

    causal: bool = True
    receptive_field: tuple[int | None, int | None] = (0, 0)
    dim: int = Missing()  # pyright: ignore[reportAssignmentType]
    context_dim: int = Missing()  # pyright: ignore[reportAssignmentType]

    def laws(self) -> tuple[Callable[..., Any], ...]:
        """What this instance promises of x, the context held fixed; the suite checks it."""
        from wonderland import laws

        return (
            laws.causality,
            laws.strict_causality,
            laws.locality,
            laws.permutation_equivariance,
            laws.shift_equivariance,
            laws.batch_independence,
            laws.padding_invariance,
            laws.gradients,
            laws.determinism,
            laws.save_load,
            laws.finiteness,
            laws.compiles,
        )

    def state_layout(self) -> Layout:
        """The state without its batch: a tuple of slots, among them the mask of the context."""
        raise NotImplementedError

    def read(self, context: Tensor, mask: Tensor | None) -> State:
        """The context as a state; masked positions of it hold 0."""
        raise NotImplementedError

    def answer(self, x: Tensor, state: State) -> Tensor:
        """What each position of x takes from the state."""
        raise NotImplementedError

    def prepare(self, context: Any, context_mask: Any = None) -> State:
        """Read the context once, to be looked at from any number of pieces of x."""
        name = f"The context of {type(self).__name__}"
        check_features(context, self.context_dim, name, next(self.parameters(), None))
        check_mask(context_mask, context, name)
        seen = not torch.compiler.is_compiling() and not context.is_meta
        if seen and context_mask is not None and not context_mask[:, 0].all():
            row = int((~context_mask[:, 0]).nonzero()[0])
            raise WonderlandError(
                f"{name} has no real token in row {row}: leave rows without a context out of the batch."
            )
        return self.read(hide(context, context_mask), context_mask)

    def forward(self, x: Any, context: Any, mask: Any = None, context_mask: Any = None) -> Tensor:
        return self.stream(x, self.prepare(context, context_mask), mask)

    def stream(self, x: Any, state: Any, mask: Any = None) -> Tensor:
        """What the tokens of x take from a prepared context."""
        self.check(x, mask)
        if not torch.compiler.is_compiling() and (wrong := misfit(state, self.state_layout(), x.shape[0], "")):
            raise WonderlandError(
                f"The context does not fit this {type(self).__name__}: {wrong}. "
                "A prepared context belongs to the module and the batch that made it: call prepare again."
            )
        if other := other_type(state, x.dtype):
            raise WonderlandError(
                f"The context of this {type(self).__name__} was prepared in {other} and the input is {x.dtype}: "
                "prepare it again."
            )
        if (other := other_device(state, x.device)) is not None:
            raise WonderlandError(
                f"The context of this {type(self).__name__} was prepared on {other} and the input is on {x.device}: "
                "move one of them with .to()."
            )
        return self.proceed(x, state, mask)

    def check(self, x: Any, mask: Any) -> None:
        """Say what is wrong with an input that does not fit."""
        check_features(x, self.dim, type(self).__name__, next(self.parameters(), None))
        check_mask(mask, x, type(self).__name__)

    def proceed(self, x: Tensor, state: State, mask: Tensor | None) -> Tensor:
        """`stream` without its checks, for mixers made of mixers."""
        return hide(self.answer(hide(x, mask), state), mask)


def check_same_rows(x: Tensor, context: Tensor) -> None:
    """Say so when there is not one context for each row."""
    if context.shape[0] != x.shape[0]:
        raise WonderlandError(f"The context has {context.shape[0]} rows and the input {x.shape[0]}: give one for each.")
