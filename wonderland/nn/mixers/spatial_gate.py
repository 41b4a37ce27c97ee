"""The spatial gate of gMLP: half of the features, mixed over time, gate the other half."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.channel.activations import Activation
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.channel.mlp import width_of
from wonderland.nn.contract.arguments import at_least_one
from wonderland.nn.contract.mixer import Mixer, hide
from wonderland.nn.contract.state import State
from wonderland.nn.norms.norm import LayerNorm


@part
class SpatialGate(Mixer):
    r"""A gated unit whose gate is a linear map over time, for sequences of a known length.

    .. math:: [Z_1, Z_2] = \phi(X U), \qquad Y = \bigl( Z_1 \odot (W\, \mathrm{norm}(Z_2) + b) \bigr) V

    with W (length, length) close to 0 and b = 1 at the start, so that it begins as a plain two-layer network. A sequence
    has at most `length` tokens; a shorter one uses the corner of W. The gate mixes tokens, not channels, whatever the
    book says of it, and needs no channel mixer beside it. Not causal.

    Shapes: x (b, t, dim) -> (b, t, dim), t <= length. Book: Alice 11.3. Paper: Liu et al., 2021 (gMLP).

    >>> SpatialGate(dim=8, length=6)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    causal = False
    alone = True

    def __init__(
        self, dim: int, length: int = 256, *, hidden: int | None = None, activation: str | Activation = "gelu"
    ):
        super().__init__()
        width = width_of(hidden, 2 * dim, "SpatialGate")
        at_least_one("SpatialGate", length=length)
        self.dim, self.length = dim, length
        self.activation = resolve(activation)
        self.inward = nn.Linear(dim, 2 * width)
        self.norm = LayerNorm(width)
        self.weight = nn.Parameter(torch.empty(length, length).normal_(std=1e-3 / max(1, length)))
        self.bias = nn.Parameter(torch.ones(length))
        self.outward = nn.Linear(width, dim)

    def check(self, x: Tensor, mask: Tensor | None) -> None:
        super().check(x, mask)
        self.check_length(x)

    def check_length(self, x: Tensor) -> None:
        if x.shape[1] > self.length:
            raise WonderlandError(
                f"This SpatialGate mixes at most {self.length} tokens, not {x.shape[1]}: cut the sequence or raise length."
            )

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        self.check_length(x)
        t = x.shape[1]
        value, gate = self.activation(self.inward(x)).chunk(2, -1)
        gate = torch.matmul(self.weight[:t, :t], hide(self.norm.apply_to(gate), mask))
        return self.outward(value * (gate + self.bias[:t].unsqueeze(-1))), ()
