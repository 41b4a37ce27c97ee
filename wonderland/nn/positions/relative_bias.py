"""Relative bias: a trained bias of the score for each distance between two tokens."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.positions.learned import within
from wonderland.nn.positions.position import Position


@part
class RelativeBias(Position):
    r"""A trainable number for each head and offset, added to the scores of every layer.

    .. math::
        g(x_i, x_j) = q_i^\top k_j / \sqrt{k} + b_{i - j}

    Tied, the table has 2 length - 1 offsets for each head, and tokens further apart than length - 1 share the last one, so
    that any sequence fits. With `tied=False` every pair of positions has its own number, :math:`B_{ij}` of size
    length x length: no longer a function of the offset, and no position beyond `length`.

    Both start at 0: attention that does not look at positions.

    Shapes: positions (b, q), (b, k) -> (b, heads, q, k).
    Book: Alice 10.2.3. Paper: Shaw et al., 2018; Raffel et al., 2020.

    >>> RelativeBias(8, heads=2, length=4).bias(torch.arange(3).unsqueeze(0), torch.arange(5).unsqueeze(0)).shape
    torch.Size([1, 2, 3, 5])
    """

    kind = "bias"

    def __init__(self, dim: int, heads: int = 1, *, length: int = 128, tied: bool = True):
        super().__init__()
        if min(heads, length) < 1:
            raise WonderlandError(
                f"RelativeBias cannot be built with heads={heads}, length={length}: both are whole numbers from 1."
            )
        self.length, self.relative = length, tied
        self.weight = nn.Parameter(torch.zeros(2 * length - 1 if tied else length * length, heads))

    def bias(
        self, query_positions: Int[Tensor, "#b q"], key_positions: Int[Tensor, "#b k"]
    ) -> Float[Tensor, "_ heads q k"]:
        rows, columns = query_positions.unsqueeze(2), key_positions.unsqueeze(1)
        if self.relative:
            index = (rows - columns).clamp(1 - self.length, self.length - 1) + (self.length - 1)
        else:
            within(query_positions, self.length, "RelativeBias")
            within(key_positions, self.length, "RelativeBias")
            index = rows * self.length + columns
        return F.embedding(index, self.weight).permute(0, 3, 1, 2)
