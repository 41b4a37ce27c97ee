"""Exact Gaussian process regression by Cholesky factors, in float64."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, mix
from wonderland.ops.algebra.arguments import Numbers, level, numbers
from wonderland.probability.gaussian_process.bfgs import bfgs
from wonderland.probability.gaussian_process.kernels import Kernel
from wonderland.probability.gaussian_process.lapack import in_place

JITTERS = (0.0, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
BOUNDS = (math.log(1e-5), math.log(1e5))


def rows(name: str, X: Numbers, features: int | None = None) -> Tensor:
    """Places as a matrix; a vector is one feature. Shapes: (n,) or (n, d) -> (n, d)."""
    matrix = numbers(name, X).detach()
    matrix = matrix.unsqueeze(1) if matrix.dim() == 1 else matrix
    if matrix.dim() != 2:
        raise WonderlandError(f"`{name}` has shape {tuple(matrix.shape)}: it needs a row for each place.")
    if features is not None and matrix.shape[1] != features:
        raise WonderlandError(
            f"`{name}` has {matrix.shape[1]} features where the process was conditioned on {features}."
        )
    return matrix.contiguous()


def safe_cholesky(matrix: Tensor) -> tuple[Tensor, float]:
    """The lower Cholesky factor, with as little added to the diagonal as makes it work: the factor and what was added.

    What is added is relative to the mean of the diagonal, so that scales do not matter. Shapes: (n, n) -> (n, n), ().

    >>> safe_cholesky(torch.ones(2, 2, dtype=torch.float64))[1]
    1e-12
    """
    size = float(matrix.diagonal().mean())
    for jitter in JITTERS:
        tried = matrix
        if jitter:
            tried = matrix.clone()
            tried.diagonal().add_(jitter * size)
        factor, failed = torch.linalg.cholesky_ex(tried)
        if not int(failed):
            return factor, jitter * size
    raise WonderlandError(
        "The covariance matrix is not positive definite, even with 0.001 of its size added: check the kernel."
    )


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""The log marginal likelihood and its three terms.

    .. math:: \log p(y) = \underbrace{-\tfrac12 y^\top K^{-1} y}_{\text{fit}}
              \underbrace{- \tfrac12 \log |K|}_{\text{complexity}} \underbrace{- \tfrac n2 \log 2 \pi}_{\text{constant}}

    `gradient` is by the logarithms of the hyperparameters, the noise last when there is one. Shapes: gradient (p,).
    """

    fit: float
    complexity: float
    constant: float
    gradient: Tensor

    @property
    def total(self) -> float:
        """The log marginal likelihood."""
        return self.fit + self.complexity + self.constant


@dataclass(frozen=True, eq=False)
class Posterior:
    """A process conditioned on rows. It never changes: there is no training mode to forget.

    Shapes: X (n, d), factor (n, n) lower, weights (n,).
    """

    process: "GaussianProcess"
    X: Tensor
    factor: Tensor
    weights: Tensor
    shift: float
    scale: float
    evidence: float
    jitter: float

    def predict(self, X: Numbers, *, noise: bool = False) -> tuple[Tensor, Tensor]:
        r"""Mean and variance at new places, of the function, or of observations when `noise`.

        .. math:: \mu_* = k_*^\top K^{-1} y, \qquad \sigma_*^2 = k_{**} - k_*^\top K^{-1} k_*

        Shapes: (m, d) -> (m,), (m,).
        """
        new = rows("X", X, self.X.shape[1])
        across = self.process.kernel(self.X, new)
        mean = across.T @ self.weights
        half = torch.linalg.solve_triangular(self.factor, across, upper=False)
        variance = (self.process.kernel.diagonal(new) - half.square().sum(0)).clamp(min=0)
        variance = variance + self.process.noise if noise else variance
        return mean * self.scale + self.shift, variance * self.scale**2

    def covariance(self, X: Numbers) -> Tensor:
        """The covariance of the function at new places. Shapes: (m, d) -> (m, m)."""
        new = rows("X", X, self.X.shape[1])
        half = torch.linalg.solve_triangular(self.factor, self.process.kernel(self.X, new), upper=False)
        return (self.process.kernel(new) - half.T @ half) * self.scale**2

    def band(self, X: Numbers, share: float = 0.95, *, noise: bool = True) -> tuple[Tensor, Tensor]:
        """The ends of the interval that holds an observation with that probability. Shapes: (m, d) -> (m,), (m,)."""
        mean, variance = self.predict(X, noise=noise)
        reach = NormalDist().inv_cdf((1 + level("share", share)) / 2) * variance.sqrt()
        return mean - reach, mean + reach

    def samples(self, X: Numbers, count: int, *, seed: int = 0) -> Tensor:
        """Functions drawn from the posterior, at new places. Shapes: (m, d) -> (count, m)."""
        mean, _ = self.predict(X)
        factor, _ = safe_cholesky(self.covariance(X))
        return mean + _normal((count, len(mean)), seed) @ factor.T

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        r"""Mean and variance of each row's observation given all the others, from one factor.

        .. math:: \mu_{-i} = y_i - \frac{[K^{-1} y]_i}{[K^{-1}]_{ii}}, \qquad \sigma_{-i}^2 = \frac{1}{[K^{-1}]_{ii}}

        Shapes: -> (n,), (n,).
        """
        inverse = torch.cholesky_inverse(self.factor)
        target = self.factor @ (self.factor.T @ self.weights)
        variance = 1 / inverse.diagonal()
        return (target - self.weights * variance) * self.scale + self.shift, variance * self.scale**2


def _normal(shape: Sequence[int], seed: int) -> Tensor:
    return torch.from_numpy(np.random.Generator(np.random.Philox(mix(seed, *shape))).standard_normal(shape))


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    r"""A prior over functions, with Gaussian noise on what is observed.

    .. math:: f \sim \mathcal{GP}(0, k), \qquad y_i = f(x_i) + \varepsilon_i, \quad \varepsilon_i \sim N(0, \sigma^2)

    `noise` is the variance :math:`\sigma^2`; it may be 0, and duplicate rows then still work. Book: D2L 18.
    Book of the field: Rasmussen and Williams, 2006.

    >>> from wonderland.probability.gaussian_process.kernels import RBF
    >>> process = GaussianProcess(RBF(1.0), noise=1e-4)
    >>> posterior = process.condition([0.0, 1.0, 2.0], [0.0, 1.0, 0.0])
    >>> posterior.predict([1.0])[0].round(decimals=2)
    tensor([1.], dtype=torch.float64)
    """

    kernel: Kernel
    noise: float = 1e-2

    def __post_init__(self):
        if not isinstance(self.kernel, Kernel):
            raise WonderlandError(f"`kernel` has to be a kernel such as RBF(), not {self.kernel!r}.")
        if not (isinstance(self.noise, int | float) and math.isfinite(self.noise) and self.noise >= 0):
            raise WonderlandError(f"`noise` is a variance of 0 or more, not {self.noise}.")

    def samples(self, X: Numbers, count: int, *, seed: int = 0) -> Tensor:
        """Functions drawn from the prior, at these places. Shapes: (m, d) -> (count, m)."""
        places = rows("X", X)
        factor, _ = safe_cholesky(self.kernel(places))
        return _normal((count, len(places)), seed) @ factor.T

    def condition(self, X: Numbers, y: Numbers, *, standardise: bool = False) -> Posterior:
        """The posterior given rows. With `standardise` y is brought to mean 0 and deviation 1 first, and back after.

        Shapes: X (n, d), y (n,).
        """
        places, target, shift, scale = _prepared(X, y, standardise)
        matrix = self.kernel(places)
        matrix = matrix + self.noise * torch.eye(len(places), dtype=torch.float64)
        factor, jitter = safe_cholesky(matrix)
        weights = torch.cholesky_solve(target.unsqueeze(1), factor).squeeze(1)
        terms = _terms(target, weights, factor.diagonal())
        return Posterior(self, places, factor, weights, shift, scale, sum(terms), jitter)

    def evidence(self, X: Numbers, y: Numbers) -> Evidence:
        """The log marginal likelihood of rows, in its terms, with its gradient. Shapes: X (n, d), y (n,)."""
        places, target, _, _ = _prepared(X, y, False)
        theta = self.kernel.theta
        full = (
            torch.cat([theta, torch.tensor([math.log(self.noise)], dtype=torch.float64)]) if self.noise > 0 else theta
        )
        return _evidence(self.kernel, full, len(theta), places, target)

    def fit(
        self,
        X: Numbers,
        y: Numbers,
        *,
        restarts: int = 0,
        seed: int = 0,
        standardise: bool = True,
        learn_noise: bool = True,
        noise_floor: float = 1e-6,
        steps: int = 200,
    ) -> Posterior:
        """The hyperparameters with the largest marginal likelihood, and the posterior under them.

        The search starts from this process and, for each restart, from others (`starts`). A noise of 0 is not learned. Noise
        stays above `noise_floor` (in the units y is brought to). Shapes: X (n, d), y (n,).

        >>> from wonderland.probability.gaussian_process.kernels import RBF
        >>> x = torch.linspace(0, 6, 40, dtype=torch.float64)
        >>> posterior = GaussianProcess(RBF()).fit(x, x.sin())
        >>> bool((posterior.predict([1.5])[0] - math.sin(1.5)).abs() < 1e-3)
        True
        """
        places, target, shift, scale = _prepared(X, y, standardise)
        kernel_size = len(self.kernel.theta)
        learned = learn_noise and self.noise > 0
        start = self.kernel.theta.detach().numpy()
        if learned:
            start = np.append(start, math.log(max(self.noise, noise_floor)))
        low, high = np.full(len(start), BOUNDS[0]), np.full(len(start), BOUNDS[1])
        if learned:
            low[-1] = math.log(noise_floor)

        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            try:
                evidence = _evidence(
                    self.kernel, torch.from_numpy(theta), kernel_size, places, target, None if learned else self.noise
                )
            except WonderlandError:
                return math.inf, np.zeros_like(theta)
            return -evidence.total, -evidence.gradient.numpy()

        best, _, _ = min(
            (
                bfgs(objective, np.clip(begin, low, high), low, high, steps=steps)
                for begin in starts(start, restarts, seed)
            ),
            key=lambda evidence: evidence[1],
        )
        theta = torch.from_numpy(best)
        noise = float(theta[kernel_size].exp()) if learned else self.noise
        process = GaussianProcess(self.kernel.with_theta(theta[:kernel_size]), noise)
        posterior = process.condition(places, target)
        return Posterior(
            process, places, posterior.factor, posterior.weights, shift, scale, posterior.evidence, posterior.jitter
        )


def starts(first: np.ndarray, restarts: int, seed: int) -> list[np.ndarray]:
    """Where searches begin: at the given place, and by turns far from it (from 0.01 to 100) and near it (a factor of 4).

    >>> [len(place) for place in starts(np.zeros(2), 1, 0)]
    [2, 2]
    """
    generator = np.random.Generator(np.random.Philox(mix(seed, restarts)))
    far = generator.uniform(math.log(0.01), math.log(100), (restarts, len(first)))
    near = first + 1.5 * generator.normal(size=(restarts, len(first)))
    return [first, *(near[i] if i % 2 else far[i] for i in range(restarts))]


def _prepared(X: Numbers, y: Numbers, standardise: bool) -> tuple[Tensor, Tensor, float, float]:
    places, target = rows("X", X), numbers("y", y, 1).detach()
    if len(places) != len(target):
        raise WonderlandError(f"`y` has {len(target)} entries where `X` has {len(places)} rows.")
    if not standardise:
        return places, target, 0.0, 1.0
    shift, scale = float(target.mean()), float(target.std(correction=0))
    scale = scale if scale > 0 else 1.0
    return places, (target - shift) / scale, shift, scale


def _terms(target: Tensor, weights: Tensor, diagonal: Tensor) -> tuple[float, float, float]:
    return (
        -0.5 * float(target @ weights),
        -float(diagonal.log().sum()),
        -0.5 * len(target) * math.log(2 * math.pi),
    )


def _evidence(
    kernel: Kernel, theta: Tensor, kernel_size: int, X: Tensor, y: Tensor, fixed_noise: float | None = None
) -> Evidence:
    r"""Value and gradient: the cotangent of K is :math:`\tfrac12 (\alpha \alpha^\top - K^{-1})`, the rest is the kernel's."""
    noisy = len(theta) > kernel_size
    noise = float(theta[-1].exp()) if noisy else (fixed_noise or 0.0)
    with torch.enable_grad():
        own = theta[:kernel_size].detach().clone().requires_grad_()
        graph = kernel.with_theta(own)(X)
    with torch.no_grad():
        matrix = graph.detach().clone()
        matrix.diagonal().add_(noise)
        solved = in_place(matrix, y)
        if solved is None:
            matrix = graph.detach().clone()
            matrix.diagonal().add_(noise)
            factor, _ = safe_cholesky(matrix)
            weights = torch.cholesky_solve(y.unsqueeze(1), factor).squeeze(1)
            diagonal = factor.diagonal()
            torch.cholesky_inverse(factor, out=matrix)
        else:
            diagonal, weights = solved
        terms = _terms(y, weights, diagonal)
        trace = float(matrix.diagonal().sum())
        # The cotangent is symmetric and so is K: its lower triangle, taken twice, does for both.
        cotangent = torch.addr(matrix, weights, weights, beta=-1, alpha=1, out=matrix).tril_()
        cotangent.diagonal().mul_(0.5)
    slope = torch.autograd.grad(graph, own, cotangent)[0] if kernel_size else torch.zeros(0, dtype=torch.float64)
    if noisy:
        by_noise = 0.5 * noise * (float(weights @ weights) - trace)
        slope = torch.cat([slope, torch.tensor([by_noise], dtype=torch.float64)])
    return Evidence(*terms, slope)
