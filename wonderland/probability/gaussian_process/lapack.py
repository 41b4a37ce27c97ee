"""Factor, solution and inverse of a covariance matrix in its own memory, by LAPACK."""

import importlib
from functools import cache
from typing import Any

import torch
from torch import Tensor

LEAST = 64  # rows from which the calls pay


@cache
def _routines() -> Any:
    """LAPACK as scipy has it, which works in place; None where scipy is not installed."""
    try:
        return importlib.import_module("scipy.linalg.lapack")
    except ImportError:
        return None


def in_place(matrix: Tensor, y: Tensor) -> tuple[Tensor, Tensor] | None:
    r"""The diagonal of the Cholesky factor and :math:`K^{-1} y`; the lower triangle of `matrix` becomes that of its inverse.

    torch copies the matrix at each of its three calls. None, with the matrix spoiled, where it is not positive definite, and
    None with the matrix as it was where there is no scipy. Shapes: (n, n), (n,) -> (n,), (n,).

    >>> K = torch.eye(64, dtype=torch.float64) * 4
    >>> found = in_place(K, torch.ones(64, dtype=torch.float64))
    >>> found is None or (found[0][0].item(), found[1][0].item(), K[1, 1].item())  # None without scipy
    (2.0, 0.25, 0.25)
    """
    lapack = _routines()
    if lapack is None or len(matrix) < LEAST or matrix.dtype != torch.float64 or matrix.device.type != "cpu":
        return None
    columns = matrix.numpy().T  # in the order of columns the lower triangle is the upper one
    factor, failed = lapack.dpotrf(columns, lower=0, clean=0, overwrite_a=1)
    if failed:
        return None
    diagonal = matrix.diagonal().clone()
    weights, _ = lapack.dpotrs(factor, y.numpy(), lower=0)
    _, failed = lapack.dpotri(factor, lower=0, overwrite_c=1)
    return None if failed else (diagonal, torch.from_numpy(weights.reshape(-1)))
