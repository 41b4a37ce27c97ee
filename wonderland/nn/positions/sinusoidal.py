"""Sinusoidal positions: sines and cosines of many frequencies, added to the embeddings."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wonderland.core import WonderlandError, part
from wonderland.nn.positions.position import Position


@part
class Sinusoidal(Position):
    r"""Fixed embeddings of a position: sine and cosine at dim / 2 frequencies, interleaved.

    .. math::
        s_i = [\sin \omega_0 i, \cos \omega_0 i, \sin \omega_1 i, \cos \omega_1 i, \dots], \qquad
        \omega_j = \mathrm{base}^{-2j / \mathrm{dim}}

    A move by d rotates every pair by the same angle wherever it starts, and :math:`s_i^\top s_j` depends on the distance
    alone. `exponent="book"` takes the Alice book at its word, :math:`\omega_j = \mathrm{base}^{-j / \mathrm{dim}}`, whose
    slowest hand is only about 100 times slower than the first. `halves` puts all sines before all cosines (Marian).

    Shapes: positions (b, t) -> (b, t, dim).
    Book: Alice 10.2.2; D2L 11.6. Paper: Vaswani et al., 2017.

    >>> Sinusoidal(4).embed(torch.tensor([[0]]))
    tensor([[[0., 1., 0., 1.]]])
    """

    kind = "embed"
    frequencies: Tensor

    def __init__(
        self, dim: int, heads: int = 1, *, base: float | int = 10000.0, exponent: str = "original", halves: bool = False
    ):
        super().__init__()
        if dim < 2 or dim % 2 or base <= 1 or exponent not in ("original", "book"):
            raise WonderlandError(
                f"Sinusoidal cannot be built with dim={dim}, base={base}, exponent={exponent!r}: "
                'dim is even, base is above 1, exponent is "original" or "book".'
            )
        self.halves = halves
        steps = torch.arange(dim // 2, dtype=torch.float64) * ((2 if exponent == "original" else 1) / dim)
        # Kept with the weights: a model built on the meta device gets it from the file, and it follows the model's type.
        self.register_buffer("frequencies", (float(base) ** -steps).to(torch.get_default_dtype()))

    def embed(self, positions: Int[Tensor, "b t"]) -> Float[Tensor, "b t dim"]:
        angles = positions.unsqueeze(-1) * self.frequencies
        if self.halves:
            return torch.cat([angles.sin(), angles.cos()], -1)
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)
