"""Sparse regression: the whole data through a few inducing points, with the best Gaussian over them in closed form."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, permutation
from wonderland.ops.algebra.arguments import Numbers, level
from wonderland.probability.gaussian_process.bfgs import bfgs
from wonderland.probability.gaussian_process.inducing import greedy_places
from wonderland.probability.gaussian_process.kernels import Kernel
from wonderland.probability.gaussian_process.regression import BOUNDS, GaussianProcess, _prepared, rows, safe_cholesky

JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class SparsePosterior:
    """A process conditioned through inducing points. Shapes: places (m, d), factors (m, m), weights (m,)."""

    kernel: Kernel
    noise: float
    places: Tensor
    factor: Tensor
    inner: Tensor
    weights: Tensor
    shift: float
    scale: float
    bound: float

    def predict(self, X: Numbers, *, noise: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and variance at new places. Shapes: (k, d) -> (k,), (k,)."""
        new = rows("X", X, self.places.shape[1])
        half = torch.linalg.solve_triangular(self.factor, self.kernel(self.places, new), upper=False)
        deep = torch.linalg.solve_triangular(self.inner, half, upper=False)
        variance = (self.kernel.diagonal(new) - half.square().sum(0) + deep.square().sum(0)).clamp(min=0)
        variance = variance + self.noise if noise else variance
        return deep.T @ self.weights * self.scale + self.shift, variance * self.scale**2

    def band(self, X: Numbers, share: float = 0.95, *, noise: bool = True) -> tuple[Tensor, Tensor]:
        """The ends of the interval that holds an observation with that probability. Shapes: (k, d) -> (k,), (k,)."""
        mean, variance = self.predict(X, noise=noise)
        reach = NormalDist().inv_cdf((1 + level("share", share)) / 2) * variance.sqrt()
        return mean - reach, mean + reach


def _parts(kernel: Kernel, noise: Tensor, Z: Tensor, X: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The bound, the factor of the inducing points, the inner factor, and the weights."""
    K = kernel(Z)
    # The same part of the diagonal as `safe_cholesky` would add, but with a gradient.
    with torch.no_grad():
        _, jitter = safe_cholesky(K.detach())
    size = float(K.detach().diagonal().mean())
    factor = torch.linalg.cholesky(K + max(jitter, JITTER * size) * torch.eye(len(Z), dtype=torch.float64))
    half = torch.linalg.solve_triangular(factor, kernel(Z, X), upper=False)
    n = len(y)
    gram = half @ half.T
    inner = torch.linalg.cholesky(torch.eye(len(Z), dtype=torch.float64) + gram / noise)
    weights = torch.linalg.solve_triangular(inner, (half @ y).unsqueeze(1), upper=False).squeeze(1) / noise
    bound = (
        -0.5 * n * math.log(2 * math.pi)
        - inner.diagonal().log().sum()
        - 0.5 * n * noise.log()
        - 0.5 * (y @ y) / noise
        + 0.5 * weights @ weights
        - 0.5 * (kernel.diagonal(X).sum() - gram.diagonal().sum()) / noise
    )
    return bound, factor, inner, weights


def sparse_bound(kernel: Kernel, noise: float, Z: Numbers, X: Numbers, y: Numbers) -> float:
    r"""A lower bound of the log marginal likelihood, equal to it when every row is an inducing point.

    .. math:: \log N(y | 0, Q + \sigma^2 I) - \tfrac{1}{2 \sigma^2} \mathrm{tr}(K - Q), \qquad Q = K_{XZ} K_{ZZ}^{-1} K_{ZX}

    Shapes: Z (m, d), X (n, d), y (n,). Paper: Titsias, 2009.

    >>> from wonderland.probability.gaussian_process.kernels import RBF
    >>> x, y = [0.0, 1.0, 2.0], [0.0, 1.0, 0.0]
    >>> exact = GaussianProcess(RBF(), 0.1).evidence(x, y).total
    >>> abs(sparse_bound(RBF(), 0.1, x, x, y) - exact) < 1e-6
    True
    """
    places, target, _, _ = _prepared(X, y, False)
    with torch.no_grad():
        return float(_parts(kernel, torch.tensor(noise, dtype=torch.float64), rows("Z", Z), places, target)[0])


def fit_sparse(
    kernel: Kernel,
    X: Numbers,
    y: Numbers,
    *,
    noise: float = 1e-1,
    inducing: int = 200,
    warm_rows: int = 1000,
    steps: int = 15,
    standardise: bool = True,
    noise_floor: float = 1e-6,
    seed: int = 0,
) -> SparsePosterior:
    """Regression of many rows (SGPR): hyperparameters by the bound, time linear in the rows.

    Hyperparameters are first fitted exactly on `warm_rows` of the rows, which is quick; inducing points are chosen
    greedily under them; `steps` of BFGS on the bound of all rows follow. Shapes: X (n, d), y (n,).

    >>> from wonderland.probability.gaussian_process.kernels import RBF
    >>> x = torch.linspace(0, 9, 200, dtype=torch.float64)
    >>> posterior = fit_sparse(RBF(), x, x.sin(), inducing=15)
    >>> bool((posterior.predict([2.0])[0] - math.sin(2.0)).abs() < 1e-2)
    True
    """
    places, target, shift, scale = _prepared(X, y, standardise)
    if not noise > 0:
        raise WonderlandError(f"`noise` has to be above 0 for inducing points, not {noise}.")
    sample = torch.from_numpy(permutation(seed, 1, len(places))[:warm_rows].copy())
    warm = GaussianProcess(kernel, noise).fit(
        places[sample], target[sample], standardise=False, noise_floor=noise_floor, steps=30
    )
    kernel, level_ = warm.process.kernel, warm.process.noise
    Z = greedy_places(kernel, places, inducing, seed=seed)
    size = len(kernel.theta)
    start = np.append(kernel.theta.detach().numpy(), math.log(max(level_, noise_floor)))
    low, high = np.full(len(start), BOUNDS[0]), np.full(len(start), BOUNDS[1])
    low[-1] = math.log(noise_floor)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        own = torch.from_numpy(theta).clone().requires_grad_()
        try:
            with torch.enable_grad():
                bound = _parts(kernel.with_theta(own[:size]), own[size].exp(), Z, places, target)[0]
                (gradient,) = torch.autograd.grad(bound, own)
        except (WonderlandError, torch.linalg.LinAlgError):
            return math.inf, np.zeros_like(theta)
        return -float(bound.detach()), -gradient.numpy()

    best, value, _ = bfgs(objective, start, low, high, steps=steps)
    theta = torch.from_numpy(best)
    kernel, noise_variance = kernel.with_theta(theta[:size]), theta[size].exp()
    with torch.no_grad():
        _, factor, inner, weights = _parts(kernel, noise_variance, Z, places, target)
    return SparsePosterior(kernel, float(noise_variance), Z, factor, inner, weights, shift, scale, -value)
