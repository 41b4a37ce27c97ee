"""Gershgorin discs: where the eigenvalues of a matrix lie, read off its entries."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.ops.algebra.arguments import Numbers, square


@dataclass(frozen=True)
class Discs:
    """Discs of the complex plane around real centres. Shapes: centers (n,), radii (n,)."""

    centers: Tensor
    radii: Tensor

    def contain(self, values: Tensor, slack: float = 0.0) -> Tensor:
        """Whether each value lies in at least one disc, widened by `slack`. Shapes: (k,) -> (k,), of truth values."""
        distance = (values.unsqueeze(-1) - self.centers).abs()
        return (distance <= self.radii + slack).any(-1)

    @property
    def radius(self) -> float:
        """No eigenvalue is larger than this in absolute value."""
        return float((self.centers.abs() + self.radii).max())

    @property
    def regular(self) -> bool:
        """True when no disc reaches zero: the matrix is strictly diagonally dominant, and so invertible."""
        return bool((self.centers.abs() > self.radii).all())


def gershgorin(matrix: Numbers) -> Discs:
    r"""The discs that hold every eigenvalue: one per row, around its diagonal entry.

    .. math::
        |\lambda - a_{ii}| \le r_i = \sum_{j \ne i} |a_{ij}| \quad \text{for at least one } i

    Useful when the diagonal dominates; the transpose has the same eigenvalues, and its discs may be smaller.

    Shapes: matrix (n, n) -> centers (n,), radii (n,). Book: D2L 22.2 (Gershgorin circle theorem).

    >>> discs = gershgorin([[1.0, 0.1, 0.1, 0.1], [0.1, 3.0, 0.2, 0.3], [0.1, 0.2, 5.0, 0.5], [0.1, 0.3, 0.5, 9.0]])
    >>> discs.radii
    tensor([0.3000, 0.6000, 0.8000, 0.9000], dtype=torch.float64)
    >>> discs.regular
    True
    """
    checked = square("matrix", matrix)
    centers = checked.diagonal()
    off_diagonal = checked - torch.diag(centers)
    return Discs(centers, off_diagonal.abs().sum(1))
