"""ALiBi: a penalty on scores that grows with the distance of tokens, at a rate of each head."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.positions.position import Position


@part
class Alibi(Position):
    r"""A penalty on the scores that grows with the distance, one slope for each head.

    .. math::
        g(x_i, x_j) = q_i^\top k_j / \sqrt{k} - s_h |i - j|, \qquad s_h = 2^{-8h / H}, \quad h = 1, \dots, H

    The published slopes are fixed; `trainable=True` starts from them and learns them, as the Alice book has it.

    Shapes: positions (b, q), (b, k) -> (b, heads, q, k).
    Book: Alice 10.2.3. Paper: Press et al., 2022.

    >>> Alibi(8, heads=2).slopes
    tensor([0.0625, 0.0039])
    """

    kind = "bias"
    relative = True
    slopes: Tensor

    def __init__(self, dim: int, heads: int = 1, *, trainable: bool = False):
        super().__init__()
        if heads < 1:
            raise WonderlandError(f"Alibi cannot be built with heads={heads}: it is a whole number from 1.")
        slopes = torch.tensor([2.0 ** (-8 * (head + 1) / heads) for head in range(heads)])
        if trainable:
            self.slopes = nn.Parameter(slopes)
        else:
            self.register_buffer("slopes", slopes)

    def bias(
        self, query_positions: Int[Tensor, "#b q"], key_positions: Int[Tensor, "#b k"]
    ) -> Float[Tensor, "_ heads q k"]:
        distance = (query_positions.unsqueeze(2) - key_positions.unsqueeze(1)).abs()
        return distance.unsqueeze(1) * -self.slopes.view(-1, 1, 1)
