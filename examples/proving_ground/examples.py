"""Examples: inputs and targets of a task."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

SILENT = -100


@dataclass(frozen=True)
class Examples:
    """Inputs (n, t) of tokens or (n, t, features) of numbers, and what is asked.

    The target of tokens is (n, t), `SILENT` at places that are not scored; that of numbers is one number per row, (n,).
    """

    inputs: Tensor
    target: Tensor

    def __len__(self) -> int:
        return len(self.inputs)

    def rows(self, index: Tensor) -> "Examples":
        return Examples(self.inputs[index], self.target[index])


def tokens(inputs: np.ndarray, target: np.ndarray) -> Examples:
    """Examples from arrays of whole numbers."""
    return Examples(torch.from_numpy(inputs.astype(np.int64)), torch.from_numpy(target.astype(np.int64)))


def distinct(
    draw: np.random.Generator, rows: int, choices: int, size: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """In each row `size` different numbers below `choices`, in random order, drawn one after another by weight.

    The largest of Gumbel noise plus log-weights are such a draw, for all rows at once.
    """
    noise = draw.gumbel(size=(rows, choices))
    if weight is not None:
        noise += np.log(weight)
    return np.argsort(-noise, axis=1)[:, :size]
