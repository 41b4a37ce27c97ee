"""Recurrent layers inside models: any width in, the states out."""

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
    """Say which cells there are."""
    if cell not in CELLS:
        raise WonderlandError(f"{name} has no cell {cell!r}: choose 'lstm', 'gru' or 'rnn'.")


class Layer(nn.Module):
    """One recurrent layer in one direction: (b, t, inputs) -> states (b, t, state_size) and the last ones.

    A mixer keeps the width of its input; inside a model a state may have its own, and it is the answer. The weights are
    those of the mixer, and those of torch.nn's layer of the same name go in by `load_torch`.

    >>> states, last = Layer("gru", 3, 5)(torch.randn(2, 4, 3))
    >>> states.shape, bool((states[:, -1] == last[0]).all())
    (torch.Size([2, 4, 5]), True)
    """

    def __init__(self, cell: str, inputs: int, state_size: int):
        super().__init__()
        self.inputs, self.state_size = inputs, state_size
        self.mixer = CELLS[cell](inputs, state_size=state_size)
        # The way back to the input's width is not used here, so it has no weights here.
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
        """The weights of a layer of torch.nn's recurrent networks; its two biases are added where only their sum counts."""
        own, size = self.mixer, self.state_size
        own.weight_input.copy_(getattr(module, f"weight_ih{suffix}"))
        own.weight_state.copy_(getattr(module, f"weight_hh{suffix}"))
        inward, inner = getattr(module, f"bias_ih{suffix}"), getattr(module, f"bias_hh{suffix}")
        assert own.bias is not None
        own.bias.copy_(inward + inner)
        if own.bias_candidate is not None:
            own.bias[-size:] = inward[-size:]
            own.bias_candidate.copy_(inner[-size:])
        return self
