"""Inducing points: a few places that stand for many."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError, permutation
from wonderland.probability.gaussian_process.kernels import Kernel


def greedy_places(kernel: Kernel, X: Tensor, count: int, *, seed: int = 0, candidates: int = 4000) -> Tensor:
    r"""Rows taken one after another where the process is least known given those already taken.

    .. math:: i_t = \arg\max_i\ k(x_i, x_i) - k_{iZ} K_{ZZ}^{-1} k_{Zi}

    This is a pivoted Cholesky factorisation of the kernel's matrix, over a sample of the rows; it stops early when nothing
    is left to know. Shapes: (n, d) -> (at most count, d). Paper: Burt et al., 2020.

    >>> from wonderland.probability.gaussian_process.kernels import RBF
    >>> x = torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.float64)
    >>> greedy_places(RBF(), x, 3).shape
    torch.Size([2, 1])
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise WonderlandError(f"The number of inducing points has to be a whole number of at least 1, not {count}.")
    with torch.no_grad():
        chosen = torch.from_numpy(permutation(seed, 0, len(X))[:candidates])
        pool = X[chosen]
        left = kernel.diagonal(pool).clone()
        enough = 1e-8 * float(left.max())
        factor = torch.zeros(min(count, len(pool)), len(pool), dtype=torch.float64)
        taken: list[int] = []
        for t in range(len(factor)):
            place = int(left.argmax())
            if float(left[place]) <= enough:
                break
            column = kernel(pool[place : place + 1], pool)[0] - factor[:t, place] @ factor[:t]
            factor[t] = column / left[place].sqrt()
            left = (left - factor[t].square()).clamp(min=0)
            taken.append(place)
    return pool[taken].clone()
