"""Word dropout: tokens of a training text that are replaced by the unknown token at random."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, part


@part
@dataclass(frozen=True)
class WordDropout:
    """Replace each of the first `length` tokens by `unknown` with this chance, so that the model learns what to do at an unknown word.

    Padding is left, and so is whatever follows the tokens of a row. Shapes: x (b, length + k), numbers (b, draws) -> (b, length + k).
    Paper: Iyyer et al., 2015.

    >>> dropout = WordDropout(length=2, unknown=1, chance=0.5)
    >>> dropout(torch.tensor([[7, 8, 9]]), np.array([[0.1, 0.9]])).tolist()
    [[1, 8, 9]]
    """

    length: int
    unknown: int
    pad: int = 0
    chance: float | int = 0.1

    def __post_init__(self):
        whole = all(isinstance(n, int) and n >= 0 for n in (self.length, self.unknown, self.pad))
        if not whole or not 1 <= self.length <= 1 << 16 or not 0 <= self.chance < 1:
            raise WonderlandError(
                "WordDropout takes the length of a row, the ids of the unknown and the padding token, and a chance below 1."
            )

    @property
    def draws(self) -> int:
        """Random numbers for each text."""
        return self.length

    def __call__(self, x: Tensor, numbers: np.ndarray) -> Tensor:
        tokens = x[:, : self.length]
        dropped = torch.as_tensor(numbers < self.chance)[:, : tokens.shape[1]] & (tokens != self.pad)
        return torch.cat([tokens.masked_fill(dropped, self.unknown), x[:, self.length :]], 1)
