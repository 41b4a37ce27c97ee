"""The principal eigenvalue: what repeated multiplication by a matrix converges to."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, count, positive, square


@dataclass(frozen=True)
class Eigenpair:
    """An eigenvalue with its unit eigenvector (n,), after so many steps, with the length of Av - λv."""

    value: float
    vector: Tensor
    steps: int
    residual: float


def principal_eigenvalue(matrix: Numbers, *, steps: int = 10_000, tolerance: float = 1e-10) -> Eigenpair:
    r"""The eigenvalue of largest absolute value, by power iteration.

    .. math::
        v_{k+1} = \frac{A v_k}{\|A v_k\|}, \qquad \lambda_k = v_k^\top A v_k

    The error shrinks by :math:`|\lambda_2 / \lambda_1|` a step; it stops at :math:`\|Av - \lambda v\| \le`
    tolerance :math:`\cdot \|A\|_F`. It cannot settle when the two largest have the same size (a pair of signs, or a
    complex pair): `spectral_radius` works there.

    Shapes: matrix (n, n) -> vector (n,). Book: D2L 22.2.

    >>> pair = principal_eigenvalue([[2.0, 1.0], [1.0, 2.0]])
    >>> round(pair.value, 9)
    3.0
    """
    checked = square("matrix", matrix)
    count("steps", steps)
    bound = positive("tolerance", tolerance) * float(checked.norm())
    start = torch.randn(len(checked), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    vector = start / start.norm()
    for step in range(1, steps + 1):
        moved = checked @ vector
        value = float(vector @ moved)
        residual = float((moved - value * vector).norm())
        if residual <= bound:
            return Eigenpair(value, vector, step, residual)
        vector = moved / moved.norm()
    raise WonderlandError(
        f"The power iteration did not settle in {steps} steps: the largest eigenvalues of `matrix` have nearly the same "
        "size (opposite signs, or a complex pair). Take spectral_radius, or more steps."
    )


def spectral_radius(matrix: Numbers) -> float:
    r"""The largest absolute value among the eigenvalues, complex ones included: how fast powers of the matrix grow.

    .. math:: \rho(A) = \lim_k \|A^{k}\|^{1/k}

    taken at :math:`k = 2^{50}` by squaring the matrix fifty times, each time brought back to length one.

    Shapes: matrix (n, n) -> one number. Book: D2L 22.2 (about :math:`\sqrt n` for a Gaussian matrix).

    >>> round(spectral_radius([[0.0, -2.0], [2.0, 0.0]]), 9)
    2.0
    """
    power = square("matrix", matrix)
    log_length, share = 0.0, 1.0
    for _ in range(50):
        length = float(power.norm())
        if length == 0.0:
            return 0.0
        log_length += share * float(torch.tensor(length, dtype=torch.float64).log())
        power = power / length
        power = power @ power
        share /= 2
    return float(torch.tensor(log_length, dtype=torch.float64).exp())


def rescale(matrix: Numbers, radius: float = 1.0) -> Tensor:
    r"""The matrix divided so that its powers neither explode nor vanish: its spectral radius becomes `radius`.

    .. math:: A \mapsto \frac{r}{\rho(A)} A

    Shapes: (n, n) -> (n, n). Book: D2L 22.2 (initialisation).

    >>> rescale([[4.0, 0.0], [0.0, 1.0]])
    tensor([[1.0000, 0.0000],
            [0.0000, 0.2500]], dtype=torch.float64)
    """
    checked = square("matrix", matrix)
    largest = spectral_radius(checked)
    if largest < 1e-12 * float(checked.norm()) or largest == 0.0:
        raise WonderlandError("`matrix` is nilpotent: all its eigenvalues are 0, and no factor changes that.")
    return checked * (positive("radius", radius) / largest)
