"""Weight norm: the length of a weight vector and its direction are learned apart."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.mixer import Pointwise


@part
class WeightNormLinear(Pointwise):
    r"""A linear layer of each token with weights :math:`w_i = g_i v_i / \lVert v_i \rVert`.

    .. math:: y_i = \frac{g_i}{\lVert v_i \rVert}\, v_i^\top x + b_i, \qquad \nabla_{v_i} L \perp v_i

    The length of v changes nothing in the answer, so that a large one slows its own learning down. It starts as a plain
    linear layer. Shapes: x (..., dim) -> (..., dim). Paper: Salimans and Kingma, 2016.

    >>> WeightNormLinear(4)(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    no_decay = frozenset({"gain", "direction"})

    def __init__(self, dim: int, *, bias: bool = True):
        super().__init__()
        self.dim = dim
        layer = nn.Linear(dim, dim, bias=bias)
        self.direction, self.bias = layer.weight, layer.bias
        self.gain = nn.Parameter(torch.linalg.vector_norm(layer.weight.detach(), dim=1))

    @property
    def weight(self) -> Tensor:
        """The weights that are used: (dim, dim)."""
        return weight_norm(self.direction, self.gain)

    def apply_to(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


def weight_norm(direction: Tensor, gain: Tensor) -> Tensor:
    """Rows of `direction` (o, ...) brought to the lengths `gain` (o,).

    >>> weight_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([10.0]))
    tensor([[6., 8.]])
    """
    if gain.shape != direction.shape[:1]:
        raise WonderlandError(
            f"weight_norm takes a gain for each of the {direction.shape[0]} rows, not of shape {tuple(gain.shape)}."
        )
    wide = (-1, *[1] * (direction.dim() - 1))
    length = torch.linalg.vector_norm(direction.flatten(1), dim=1)
    return direction * (gain / length).view(wide)
