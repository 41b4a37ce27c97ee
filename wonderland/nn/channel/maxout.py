"""Maxout: each unit is the maximum of several linear functions."""

from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.channel.mlp import width_of
from wonderland.nn.contract.mixer import Pointwise


@part
class Maxout(Pointwise):
    r"""Each unit is the maximum of `pieces` linear functions of the token.

    .. math:: z_i = \max_{k} \bigl( w_{ik}^\top x + b_{ik} \bigr)

    With `pieces=1` it is a linear layer; with one of two lines fixed at 0 it is a ReLU. `hidden` units, if given, are
    followed by an output matrix back to `dim`; without it there are `dim` units and nothing after them.
    Shapes: x (..., dim) -> (..., dim); no state. Book: Alice 5.4. Paper: Goodfellow et al., 2013.

    >>> import torch
    >>> Maxout(dim=8, pieces=3)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, dim: int, *, hidden: int | None = None, pieces: int = 2, bias: bool = True):
        super().__init__()
        if pieces < 1:
            raise WonderlandError(f"Maxout takes the largest of at least one piece, not of {pieces}.")
        width = width_of(hidden, dim, "Maxout")
        self.dim, self.pieces = dim, pieces
        self.inward = nn.Linear(dim, pieces * width, bias=bias)
        self.outward = nn.Linear(width, dim, bias=bias) if hidden is not None else None

    def apply_to(self, x: Tensor) -> Tensor:
        # Pieces lie side by side, each a whole layer, so that the maximum runs over contiguous rows.
        units = self.inward(x).unflatten(-1, (self.pieces, -1)).amax(-2)
        return units if self.outward is None else self.outward(units)
