"""Conditioning: how much of an answer survives a small error in the question."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers, square

# Beyond this, a float64 solution keeps no digit that can be relied on.
WORST = 1.0 / torch.finfo(torch.float64).eps


def condition_number(matrix: Numbers) -> float:
    r"""The largest factor by which solving with the matrix magnifies a relative error; infinity when it is singular.

    .. math:: \kappa(A) = \|A\|_2 \, \|A^{-1}\|_2 = \sigma_{\max} / \sigma_{\min} \ge 1

    Shapes: matrix (n, c) -> one number. Book: Alice 4.1.4.

    >>> condition_number([[1.0, 0.0], [0.0, 0.01]])
    100.0
    >>> condition_number([[1.0, 2.0], [2.0, 4.0]]) > 1e15
    True
    """
    values = torch.linalg.svdvals(numbers("matrix", matrix, 2))
    smallest = float(values[-1])
    return float(values[0]) / smallest if smallest > 0 else float("inf")


def dependent_columns(matrix: Numbers) -> list[int]:
    r"""The columns that are combinations of the columns before them; empty when the matrix has full column rank.

    .. math:: j : \; \min_w \|A_{:,<j} w - a_j\| \le \epsilon \, \|a_j\|

    Shapes: matrix (n, c) -> at most c column numbers. Book: Alice 4.1.3 (collinear features); D2L 22.1.

    >>> dependent_columns([[1.0, 2.0, 0.0], [2.0, 4.0, 1.0], [3.0, 6.0, 0.0]])
    [1]
    """
    checked = numbers("matrix", matrix, 2)
    slack = max(checked.shape) * torch.finfo(torch.float64).eps * 10
    basis: list[Tensor] = []
    dependent = []
    for index, column in enumerate(checked.T):
        rest = column
        for _ in range(2):  # once more: the first round leaves rounding along the basis
            for direction in basis:
                rest = rest - (direction @ rest) * direction
        if float(rest.norm()) <= slack * float(column.norm()):
            dependent.append(index)
        else:
            basis.append(rest / rest.norm())
    return dependent


def solve(matrix: Numbers, right: Numbers) -> Tensor:
    r"""The solution of a linear system, or a sentence when the matrix is singular: never a solution made of noise.

    .. math:: A x = b

    Shapes: matrix (n, n), right (n,) or (n, k) -> the shape of right. Book: Alice 4.1.3-4.1.4; D2L 22.1.

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    tensor([1.0000, 0.5000], dtype=torch.float64)
    """
    left, target = square("matrix", matrix), numbers("right", right)
    if target.dim() not in (1, 2) or len(target) != len(left):
        raise WonderlandError(f"`right` has shape {tuple(target.shape)} where `matrix` has {len(left)} rows.")
    kappa = condition_number(left)
    if kappa >= WORST:
        raise WonderlandError(
            f"`matrix` is singular (condition number {kappa:.0e}): its rows depend on each other, and no single solution exists."
        )
    return torch.linalg.solve(left, target)
