"""The token-wise MLP: what attention gathered, one hidden layer works out, each token for itself."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.channel.activations import Activation, name_of
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.contract.hooks import untouched
from wonderland.nn.contract.mixer import Pointwise
from wonderland.nn.norms.norm import Norm
from wonderland.ops import hidden, steps
from wonderland.ops.branches import fits
from wonderland.ops.chain import Link

WIDEST = 1 << 24  # as much as a size in a spec may be


@part
class MLP(Pointwise):
    r"""One hidden layer, applied to each token alone.

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
        drops = self.training and self.dropout
        if not drops and (y := at_once(x, self.inward, self.outward, name_of(self.activation))) is not None:
            return y
        h = self.activation(self.inward(x))
        if self.dropout:
            h = F.dropout(h, self.dropout, self.training)
        return self.outward(h)

    def link(self, x: Tensor, norm: Any) -> Link | None:
        # Modules are read from their dictionaries: attributes go through Python, a microsecond each.
        inward, outward = self._modules["inward"], self._modules["outward"]
        name = name_of(self.activation)
        form = norm.form() if isinstance(norm, Norm) else None
        if type(self) is not MLP or form is None or name not in hidden.ACTIVATIONS or (self.training and self.dropout):
            return None
        if type(inward) is not nn.Linear or type(outward) is not nn.Linear:
            return None
        gain, shift, eps, centred = form
        weights = (gain, shift, inward.weight, inward.bias, outward.weight, outward.bias)
        if not fits(x.shape[-1], None, weights) or not hidden.usable(x, *weights):
            return None
        if not untouched(self, norm, inward, outward):
            return None
        return hidden.link(weights, eps=eps, centred=centred, activation=name)

    def plan(self, program: steps.Program) -> bool:
        weights, name = program.matrices(self, ("inward", "outward")), name_of(program.look(self, "activation"))
        if weights is None or name not in steps.ACTIVATIONS or not program.rests(self, "dropout"):
            return False
        (inward, outward), biases = weights, program.biases(self, ("inward", "outward"))
        sizes = outward.shape[1], steps.ACTIVATIONS.index(name), 0
        program.add(steps.HIDDEN, sizes, (inward, biases[0], outward, biases[1]))
        return True


def at_once(x: Tensor, inward: nn.Module, outward: nn.Module, activation: str) -> Tensor | None:
    """A linear layer, an activation by its name and another linear layer in one kernel; None where there is none for them."""
    if type(inward) is not nn.Linear or type(outward) is not nn.Linear or activation not in hidden.ACTIVATIONS:
        return None
    weights = (None, None, inward.weight, inward.bias, outward.weight, outward.bias)
    if not fits(x.shape[-1], None, weights) or not hidden.usable(x, *weights) or not untouched(inward, outward):
        return None
    return hidden.hidden(x, *weights, eps=0.0, activation=activation)


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
