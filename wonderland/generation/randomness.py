"""Random numbers for each row that do not depend on the other rows of the batch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from wonderland.core.seeds import uniform

BLOCK = 256


class Uniforms:
    """Uniform numbers in [0, 1), each a function of (seed, name of the row, step); computed in blocks of steps.

    >>> batch, alone = Uniforms(0, [7, 8]), Uniforms(0, [8])
    >>> bool(batch.at(3)[1] == alone.at(3)[0])
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

    def keep(self, indices: Sequence[int]) -> None:
        """Drop all rows but these."""
        self._rows, self._numbers = self._rows[list(indices)], self._numbers[list(indices)]
