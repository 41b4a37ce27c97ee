"""Recurrent layers inside models: inputs of any width to states."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.mixer import hide
from wonderland.nn.contract.state import Slot, State
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.mixers.lstm import LSTM
from wonderland.nn.mixers.rnn import RNN

CELLS = {"rnn": RNN, "gru": GRU, "lstm": LSTM}


def check_cell(cell: Any, name: str) -> None:
    """Refuse an unknown cell."""
    if cell not in CELLS:
        raise WonderlandError(f"{name} has no cell {cell!r}: choose 'lstm', 'gru' or 'rnn'.")


class Layer(nn.Module):
    """One recurrent layer in one direction: (b, t, inputs) -> states (b, t, state_size) and the last ones.

    A mixer projects its states back to the width of its input; this layer returns the states themselves. `load_torch` copies the
    weights of the torch.nn layer of the same name.

    >>> states, last = Layer("gru", 3, 5)(torch.randn(2, 4, 3))
    >>> states.shape, bool((states[:, -1] == last[0]).all())
    (torch.Size([2, 4, 5]), True)
    """

    def __init__(self, cell: str, inputs: int, state_size: int):
        super().__init__()
        self.inputs, self.state_size = inputs, state_size
        self.mixer = CELLS[cell](inputs, state_size=state_size)
        # The output projection is not used here, so it has no weights.
        self.mixer.project = nn.Identity()

    def forward(
        self, x: Tensor, state: State | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        states, last = self.mixer.states(hide(x, mask), state, mask)
        return states, last

    def layout(self) -> tuple[Slot, ...]:
        """The state without its batch."""
        return self.mixer.layout()

    @torch.no_grad()
    def load_torch(self, module: Any, suffix: str = "_l0") -> "Layer":
        """Copy the weights of a torch.nn recurrent layer; its two biases are added where only their sum matters."""
        mixer, size = self.mixer, self.state_size
        mixer.weight_input.copy_(getattr(module, f"weight_ih{suffix}"))
        mixer.weight_state.copy_(getattr(module, f"weight_hh{suffix}"))
        input_bias, state_bias = getattr(module, f"bias_ih{suffix}"), getattr(module, f"bias_hh{suffix}")
        assert mixer.bias is not None
        mixer.bias.copy_(input_bias + state_bias)
        if mixer.bias_candidate is not None:
            mixer.bias[-size:] = input_bias[-size:]
            mixer.bias_candidate.copy_(state_bias[-size:])
        return self
