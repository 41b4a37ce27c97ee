"""Gated linear units: one half of the hidden layer gates the other half."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.channel.activations import Activation, activation
from wonderland.nn.channel.mlp import chance, width_of
from wonderland.nn.contract.mixer import Pointwise


@part
class GLU(Pointwise):
    r"""A hidden layer multiplied by a gate, applied to each token alone.

    .. math:: y = W_o \bigl( g(W_g x) \odot W_v x \bigr)

    The `gate` function g names the family: "sigmoid" is the GLU, "silu" SwiGLU (LLaMA), "gelu" GEGLU, "relu" ReGLU,
    "identity" the bilinear unit. The default width, 8/3 of `dim`, gives as many parameters as an MLP of expansion 4.
    With `project=False` there is no output matrix and the gated units are the output, as the book writes it.
    Both input matrices are one product, the gate's rows first. Shapes: x (..., dim) -> (..., dim); no state.
    Book: Alice 5.4 and 11.3. Papers: Dauphin et al., 2017; Shazeer, 2020.

    >>> import torch
    >>> GLU(dim=8, gate="sigmoid")(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        dim: int,
        *,
        hidden: int | None = None,
        gate: str | Activation = "silu",
        bias: bool = False,
        project: bool = True,
        dropout: float | int = 0.0,
    ):
        super().__init__()
        if not project and hidden not in (None, dim):
            raise WonderlandError(
                f"GLU without an output matrix has hidden = dim = {dim}, not {hidden}: leave hidden out or project."
            )
        width = width_of(hidden, dim * 8 / 3 if project else dim, "GLU")
        self.dim, self.dropout = dim, chance(dropout, "GLU")
        self.gate = activation(gate)
        self.inward = nn.Linear(dim, 2 * width, bias=bias)
        self.outward = nn.Linear(width, dim, bias=bias) if project else None

    def apply_to(self, x: Tensor) -> Tensor:
        gate, value = self.inward(x).chunk(2, -1)
        hidden = self.gate(gate) * value
        if self.dropout:
            hidden = F.dropout(hidden, self.dropout, self.training)
        return hidden if self.outward is None else self.outward(hidden)
