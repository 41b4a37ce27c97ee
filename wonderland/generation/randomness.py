"""One random generator for each row: a number for (seed, row, step), whoever else is in the batch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from wonderland.core.seeds import uniform

BLOCK = 256


class Uniforms:
    """Numbers in [0, 1) that depend on (seed, name of the row, step) alone; made in blocks, read by the step.

    >>> both, second = Uniforms(0, [7, 8]), Uniforms(0, [8])
    >>> bool(both.at(3)[1] == second.at(3)[0])
    True
    """

    def __init__(self, seed: int, rows: Sequence[int]):
        self._seed, self._rows = seed, np.asarray(rows, dtype=np.int64)
        self._block, self._numbers = -1, torch.empty(0)

    def at(self, step: int) -> Tensor:
        """The numbers (rows, 1) of one step."""
        block, column = divmod(step, BLOCK)
        if block != self._block:
            self._block, self._numbers = block, torch.from_numpy(uniform(self._seed, block, self._rows, BLOCK))
        return self._numbers[:, column : column + 1]

    def keep(self, places: Sequence[int]) -> None:
        """Go on with some of the rows."""
        self._rows, self._numbers = self._rows[list(places)], self._numbers[list(places)]
