"""What recurrent mixers share: weights, a state of fixed size, and loading from torch.nn."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.mixer import Mixer, lengths
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.ops.cells import CELLS
from wonderland.ops.recurrence import recurrence


class Recurrent(Mixer):
    """A mixer whose state passes through one of the cells of `ops.recurrence` at each token.

    Weights are those of the equations, gates below one another: `weight_input` (g e, dim), `weight_state` (g e, e) and
    `bias` (g e). A state of another size than dim is brought back to dim by the linear map `project`.
    """

    bias: Tensor | None
    bias_candidate: Tensor | None

    def __init__(self, dim: int, *, state_size: int | None, cell: str, bias: bool, candidate: bool = False):
        super().__init__()
        size = dim if state_size is None else state_size
        if size < 1:
            raise WonderlandError(f"{type(self).__name__} needs a state_size of at least 1, not {size}.")
        self.dim, self.state_size, self.cell = dim, size, cell
        gates = CELLS[cell].gates
        self.weight_input = nn.Parameter(torch.empty(gates * size, dim))
        self.weight_state = nn.Parameter(torch.empty(gates * size, size))
        self.register_parameter("bias", nn.Parameter(torch.empty(gates * size)) if bias else None)
        self.register_parameter("bias_candidate", nn.Parameter(torch.empty(size)) if bias and candidate else None)
        for value in self.parameters():
            nn.init.uniform_(value, -(size**-0.5), size**-0.5)
        self.project = nn.Linear(size, dim) if size != dim else nn.Identity()

    def laws(self):
        from wonderland import laws

        # Without biases zeros leave a state of zeros where it is, so a delay of the input is a delay of the output.
        rest = (laws.shift_equivariance,) if self.bias is None else ()
        return (*super().laws(), laws.strict_causality, *rest)

    def layout(self) -> Layout:
        return tuple(Slot((self.state_size,)) for _ in range(CELLS[self.cell].states))

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        states, last = self.states(x, state, mask)
        return self.project(states), last

    def states(self, x: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        """The states (b, t, state_size) after each token, and the last ones."""
        extra = self.bias_candidate
        if self.cell == "gru_after" and extra is None:
            extra = x.new_zeros(self.state_size)
        return recurrence(
            self.cell,
            x,
            self.weight_input,
            self.weight_state,
            self.bias,
            self._rest(x) if state is None else state,
            extra=extra,
            lengths=None if mask is None else lengths(mask),
        )

    def _rest(self, x: Tensor) -> State:
        return tuple(x.new_zeros(x.shape[0], self.state_size) for _ in range(CELLS[self.cell].states))

    @classmethod
    def from_torch(cls, module: nn.Module, *, layer: int | None = None, reverse: bool | None = None) -> Any:
        """This mixer with the weights of the torch.nn module of the same name, and its outputs.

        torch keeps two biases where only their sum counts; they are added here. Of a module with several layers or two
        directions one is taken: the `layer` counted from 0, and with `reverse` the one that reads from the end (give it
        the sequence backwards). Layers one after another are a `Stack` with these as its blocks; both directions of a
        layer are `Bidirectional.from_torch`.
        """
        name = cls.__name__
        kind = getattr(nn, name, None)
        if kind is None or not isinstance(module, kind):
            raise WonderlandError(f"{name}.from_torch takes a torch.nn.{name}, not a {type(module).__name__}.")
        given: Any = module
        if given.proj_size:
            raise WonderlandError(f"{name}.from_torch takes no projection of the state, and this one has proj_size.")
        if (layer is None and given.num_layers != 1) or not 0 <= (layer or 0) < given.num_layers:
            raise WonderlandError(
                f"This torch.nn.{name} has {given.num_layers} layers: name the one to load, layer=0 to "
                f"{given.num_layers - 1}, and make them the blocks of a Stack."
            )
        if given.bidirectional and reverse is None:
            raise WonderlandError(
                f"This torch.nn.{name} reads in two directions: say which to load, reverse=False or True, "
                "or take both with Bidirectional.from_torch."
            )
        if reverse and not given.bidirectional:
            raise WonderlandError(f"This torch.nn.{name} reads in one direction: leave reverse out.")
        end = f"_l{layer or 0}{'_reverse' if reverse else ''}"
        enter, back = getattr(given, f"weight_ih{end}"), getattr(given, f"weight_hh{end}")
        if enter.shape[1] != given.hidden_size:
            raise WonderlandError(
                f"{name}.from_torch takes equal input and hidden sizes, not {enter.shape[1]} and {given.hidden_size}: "
                "a mixer keeps the width."
            )
        mixer = cls(given.hidden_size, bias=given.bias, **cls._options(given))
        mixer.to(enter)
        with torch.no_grad():
            mixer.weight_input.copy_(enter)
            mixer.weight_state.copy_(back)
            if mixer.bias is not None:
                input_bias, state_bias = getattr(given, f"bias_ih{end}"), getattr(given, f"bias_hh{end}")
                mixer.bias.copy_(input_bias + state_bias)
                if mixer.bias_candidate is not None:
                    mixer.bias[-mixer.state_size :] = input_bias[-mixer.state_size :]
                    mixer.bias_candidate.copy_(state_bias[-mixer.state_size :])
        return mixer.train(given.training)

    @classmethod
    def _options(cls, module: Any) -> dict[str, Any]:
        """What else `from_torch` reads off a module."""
        return {}


def among(name: str, option: str, value: Any, choices: tuple[str, ...]) -> str:
    """An option's value, or a sentence that lists what it can be."""
    if value not in choices:
        raise WonderlandError(
            f"{name} has no {option} {value!r}: choose {' or '.join(repr(choice) for choice in choices)}."
        )
    return value
