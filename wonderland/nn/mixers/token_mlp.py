"""The token MLP: one MLP over time, shared by all features, for sequences of a fixed length."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.channel.activations import Activation
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.channel.mlp import width_of
from wonderland.nn.contract.mixer import Mixer
from wonderland.nn.contract.state import State


@part
class TokenMLP(Mixer):
    r"""An MLP over time, the same for each feature: the token mixer of MLP-Mixer.

    .. math:: Y = \bigl( W_2\, \phi(W_1 X + b_1) + b_2 \bigr)

    with X (t, dim), W_1 (hidden, length) and W_2 (length, hidden). It knows its tokens by their place, so a sequence has
    at most `length` of them; a shorter one uses the first columns and rows, as if the rest were 0. Not causal.

    Shapes: x (b, t, dim) -> (b, t, dim), t <= length. Book: Alice 11.3. Paper: Tolstikhin et al., 2021.

    >>> TokenMLP(dim=8, length=6)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    causal = False

    def __init__(
        self,
        dim: int,
        length: int = 256,
        *,
        expansion: float | int = 2,
        hidden: int | None = None,
        activation: str | Activation = "gelu",
        bias: bool = True,
    ):
        super().__init__()
        width = width_of(hidden, length * expansion, "TokenMLP")
        self.dim, self.length = dim, length
        self.activation = resolve(activation)
        self.inward = nn.Linear(length, width, bias=bias)
        self.outward = nn.Linear(width, length, bias=bias)

    def check(self, x: Tensor, mask: Tensor | None) -> None:
        super().check(x, mask)
        self.check_length(x)

    def check_length(self, x: Tensor) -> None:
        if x.shape[1] > self.length:
            raise WonderlandError(
                f"This TokenMLP mixes at most {self.length} tokens, not {x.shape[1]}: cut the sequence or raise length."
            )

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        self.check_length(x)
        t = x.shape[1]
        hidden = torch.matmul(self.inward.weight[:, :t], x)
        if self.inward.bias is not None:
            hidden = hidden + self.inward.bias.unsqueeze(-1)
        y = torch.matmul(self.outward.weight[:t], self.activation(hidden))
        return (y if self.outward.bias is None else y + self.outward.bias[:t].unsqueeze(-1)), ()
