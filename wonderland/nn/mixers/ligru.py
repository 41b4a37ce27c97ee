"""The light gated recurrent unit: a single gate between the new state and the old."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import part
from wonderland.nn.contract.mixer import check_mask, hide
from wonderland.nn.mixers.recurrent import Recurrent, among


@part
class LiGRU(Recurrent):
    r"""A recurrent layer with one gate: a convex combination of a plain recurrent layer and a skip connection.

    .. math::
        \gamma_i = \sigma(V s_{i-1} + U x_i + b_\gamma), \qquad
        s_i = \gamma_i \odot \phi(A s_{i-1} + B x_i + b) + (1 - \gamma_i) \odot s_{i-1}

    A gate of 0 keeps the state and 1 overwrites it, as in the book; the update gate of `GRU` means the opposite. The book
    prints the equation without :math:`\phi` (activation="identity"), the paper uses a rectifier; "tanh" keeps states bounded.

    Shapes: x (b, t, dim) -> (b, t, dim); state s (b, state_size), constant in t.
    activation: "tanh", "relu" or "identity".
    Book: Alice 13.2. Paper: Ravanelli et al., 2018.

    >>> mixer = LiGRU(dim=4)
    >>> gates = mixer.gates(torch.randn(2, 3, 4))
    >>> bool(binarity(gates) <= 0.25)
    True
    """

    def __init__(self, dim: int, *, state_size: int | None = None, activation: str = "tanh", bias: bool = True):
        cell = f"ligru_{among('LiGRU', 'activation', activation, ('tanh', 'relu', 'identity'))}"
        super().__init__(dim, state_size=state_size, cell=cell, bias=bias)

    def gates(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The gates (b, t, state_size) that a sequence opens, 0 at masked positions; `binarity` makes a penalty of them."""
        self.check(x, mask)
        check_mask(mask, x, "LiGRU")
        x = hide(x, mask)
        states, _ = self.states(x, None, mask)
        before = F.pad(states[:, :-1], (0, 0, 1, 0))
        e = self.state_size
        drive = F.linear(x, self.weight_input[:e], None if self.bias is None else self.bias[:e])
        return hide(torch.sigmoid(drive + F.linear(before, self.weight_state[:e])), mask)


def binarity(gates: Tensor) -> Tensor:
    r"""How far gates are from 0 and 1: the mean of :math:`\gamma (1 - \gamma)`, 0 for binary gates, 1/4 for undecided ones.

    Added to a loss it drives gates to decide.

    >>> binarity(torch.tensor([0.0, 1.0, 0.5, 0.5]))
    tensor(0.1250)
    """
    return (gates * (1 - gates)).mean()
