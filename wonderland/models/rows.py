"""Rows of a table as one matrix in float64, for models that are fitted in closed form."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError

MOST_LEVELS = 1000


def width_of(name: str, numbers: int, levels: Sequence[int]) -> int:
    """The number of columns of `row_features`; too many categories are refused."""
    if sum(levels) > MOST_LEVELS:
        raise WonderlandError(
            f"{name} gives every category a column of its own, at most {MOST_LEVELS:,}, and here there are {sum(levels):,}: "
            "leave such columns out (drop), or choose another model."
        )
    return numbers + sum(levels)


def row_features(x: Tensor, numbers: int, levels: Sequence[int]) -> Tensor:
    r"""Numbers as they are; of each category a column that is :math:`1 / \sqrt 2` where a row has it.

    Two rows that differ in one category are then at distance 1. Shapes: x (b, p + q) -> (b, p + total of levels).

    >>> row_features(torch.tensor([[0.5, 1.0]]), 1, [3]).round(decimals=3)
    tensor([[0.5000, 0.0000, 0.7070, 0.0000]], dtype=torch.float64)
    """
    blocks = [x[:, :numbers].double()]
    for i, count in enumerate(levels):
        codes = x[:, numbers + i].long().clamp(0, count - 1)
        blocks.append(F.one_hot(codes, count).double() * 0.5**0.5)
    return torch.cat(blocks, 1)


def copies(weight: Tensor | None) -> Tensor | None:
    """Weights as whole numbers of copies (n,), None where all are equal or none are given; fractions are refused."""
    if weight is None or bool(weight.max() - weight.min() < 1e-9 * weight.max()):
        return None
    known = weight[weight > 0]
    counts = (weight / known.min()).round()
    if not torch.allclose(counts * known.min(), weight, rtol=1e-6) or counts.sum() > 20_000:
        raise WonderlandError(
            "GaussianProcess takes weights that are whole numbers of copies, at most 20,000 rows in all: choose another model "
            "for other weights."
        )
    return counts.long()
