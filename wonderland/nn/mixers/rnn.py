"""The Elman network: one matrix and one activation at each token."""

from typing import Any

from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.state import State
from wonderland.nn.mixers.recurrent import Recurrent, among


@part
class RNN(Recurrent):
    r"""A recurrent layer after Elman.

    .. math::
        s_i = \phi(A s_{i-1} + B x_i + b), \qquad y_i = s_i \quad \text{or, with a readout,} \quad y_i = C s_i + D x_i

    Gradients through n tokens contain n factors :math:`A`: they vanish or explode unless its eigenvalues are near 1.
    `detach` a state between pieces for truncated backpropagation through time.

    Shapes: x (b, t, dim) -> (b, t, dim); state s (b, state_size), constant in t.
    activation: "tanh" or "relu". readout: the book's output map, which also reads the token itself.
    Book: Alice 13.2; Dive into Deep Learning 9.4. Paper: Elman, 1990.

    >>> import torch
    >>> mixer = RNN(dim=4)
    >>> y, state = mixer.stream(torch.randn(2, 3, 4))
    >>> bool((y[:, -1] == state[0]).all())
    True
    """

    def __init__(
        self,
        dim: int,
        *,
        state_size: int | None = None,
        activation: str = "tanh",
        readout: bool = False,
        bias: bool = True,
    ):
        cell = f"rnn_{among('RNN', 'activation', activation, ('tanh', 'relu'))}"
        super().__init__(dim, state_size=state_size, cell=cell, bias=bias)
        self.from_token = nn.Linear(dim, dim, bias=False) if readout else None
        if readout:
            self.project = nn.Linear(self.state_size, dim, bias=False)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        y, last = super().mix(x, state, seen, mask)
        return (y if self.from_token is None else y + self.from_token(x)), last

    @classmethod
    def _options(cls, module: Any) -> dict[str, Any]:
        return {"activation": module.nonlinearity}
