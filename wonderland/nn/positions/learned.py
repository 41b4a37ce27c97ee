"""Learned positions: one trainable vector for each place, added to the embeddings."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.positions.position import Position
from wonderland.ops.shapes import readable


@part
class Learned(Position):
    r"""Absolute positions looked up in a table; best where sequences are about equally long.

    .. math::
        x_i \leftarrow x_i + S_{i + o}, \qquad S \in \mathbb{R}^{(\mathrm{length} + o) \times \mathrm{dim}}

    o is `offset`, 0 unless given: the row of position 0. Some published tables keep their first rows for padding (RoBERTa,
    OPT: 2).

    Shapes: positions (b, t), below `length` -> (b, t, dim).
    Book: Alice 10.2.2. Paper: Gehring et al., 2017; Dosovitskiy et al., 2021.

    >>> Learned(8, length=16).embed(torch.arange(5).unsqueeze(0)).shape
    torch.Size([1, 5, 8])
    """

    kind = "embed"

    def __init__(self, dim: int, heads: int = 1, *, length: int = 1024, offset: int = 0):
        super().__init__()
        if min(dim, length) < 1:
            raise WonderlandError(
                f"Learned cannot be built with dim={dim}, length={length}: both are whole numbers from 1."
            )
        if offset < 0:
            raise WonderlandError(f"Learned cannot be built with offset={offset}: it is a whole number from 0.")
        self.offset = offset
        self.weight = nn.Parameter(torch.empty(length + offset, dim))
        nn.init.normal_(self.weight, std=0.02)

    def embed(self, positions: Int[Tensor, "b t"]) -> Float[Tensor, "b t dim"]:
        within(positions, self.length, "Learned")
        return F.embedding(positions + self.offset if self.offset else positions, self.weight)

    @property
    def length(self) -> int:
        """The number of positions."""
        return self.weight.shape[0] - self.offset


def within(positions: Any, length: int, name: str) -> None:
    """Say so when a position lies beyond a table."""
    if not isinstance(positions, Tensor) or positions.dtype not in (torch.int64, torch.int32):
        had = positions.dtype if isinstance(positions, Tensor) else f"a {type(positions).__name__}"
        raise WonderlandError(f"{name} takes positions as whole numbers (batch, time), not {had}.")
    if not readable(positions):
        return
    first, last = int(positions.min()), int(positions.max())
    if first < 0:
        raise WonderlandError(f"{name} was asked for position {first}: positions count from 0.")
    if last >= length:
        raise WonderlandError(
            f"{name} has {length} positions and was asked for position {last}, counted from 0: "
            "give shorter sequences, or build it with a larger length."
        )
