"""The token-wise MLP: one hidden layer, applied to each token alone."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.channel.activations import Activation
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.contract.mixer import Pointwise

WIDEST = 1 << 24  # as much as a size in a spec may be


@part
class MLP(Pointwise):
    r"""A multilayer perceptron with one hidden layer, applied to each token alone.

    .. math:: y = W_2\, \phi(W_1 x)

    The hidden layer has `hidden` units, `expansion` times `dim` unless said otherwise. Biases are left out by default, as
    in most transformers of today. Shapes: x (..., dim) -> (..., dim); no state.
    Book: Alice 10.3.1; D2L 11.7. Paper: Vaswani et al., 2017.

    >>> import torch
    >>> MLP(dim=8, activation="relu")(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        dim: int,
        *,
        expansion: float | int = 4,
        hidden: int | None = None,
        activation: str | Activation = "gelu",
        bias: bool = False,
        dropout: float | int = 0.0,
    ):
        super().__init__()
        width = width_of(hidden, dim * expansion, "MLP")
        self.dim, self.dropout = dim, chance(dropout, "MLP")
        self.activation = resolve(activation)
        self.inward = nn.Linear(dim, width, bias=bias)
        self.outward = nn.Linear(width, dim, bias=bias)

    def apply_to(self, x: Tensor) -> Tensor:
        h = self.activation(self.inward(x))
        if self.dropout:
            h = F.dropout(h, self.dropout, self.training)
        return self.outward(h)


def width_of(hidden: int | None, default: float | int, name: str) -> int:
    """The number of hidden units: the one asked for, or the default rounded; at least one."""
    width = round(default) if hidden is None else hidden
    if width > WIDEST:
        raise WonderlandError(f"{name} has at most {WIDEST:,} hidden units, not {width:,}: lower hidden or expansion.")
    if width < 1:
        raise WonderlandError(f"{name} needs at least one hidden unit, not {width}: raise hidden or expansion.")
    return width


def chance(dropout: float | int, name: str) -> float:
    """A probability of dropping, checked."""
    if not 0 <= dropout < 1:
        raise WonderlandError(f"{name} takes a dropout probability of at least 0 and below 1, not {dropout}.")
    return float(dropout)
