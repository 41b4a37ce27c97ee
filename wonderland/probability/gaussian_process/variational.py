"""Stochastic variational processes: minibatches, any likelihood, natural gradients for the inducing values."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, permutation
from wonderland.ops.algebra.arguments import Numbers, choice
from wonderland.probability.gaussian_process.inducing import greedy_places
from wonderland.probability.gaussian_process.kernels import Kernel
from wonderland.probability.gaussian_process.regression import _prepared, rows

_NODES, _WEIGHTS = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(20))
_WEIGHTS = _WEIGHTS / math.sqrt(2 * math.pi)
LIKELIHOODS = ("gaussian", "bernoulli", "poisson")


def _log_likelihood(name: str, y: Tensor, f: Tensor, noise: Tensor) -> Tensor:
    if name == "gaussian":
        return -0.5 * (math.log(2 * math.pi) + noise.log() + (y - f).square() / noise)
    if name == "bernoulli":
        return torch.nn.functional.logsigmoid((2 * y - 1) * f)
    return y * f - f.exp() - torch.lgamma(y + 1)


def expected_log_likelihood(name: str, y: Tensor, mean: Tensor, variance: Tensor, noise: Tensor) -> Tensor:
    r""":math:`\mathrm{E}_{f \sim N(m, v)} \log p(y | f)`: in closed form, or by Gauss-Hermite quadrature. Shapes: (n,)."""
    if name == "gaussian":
        return _log_likelihood(name, y, mean, noise) - 0.5 * variance / noise
    if name == "poisson":
        return y * mean - (mean + variance / 2).exp() - torch.lgamma(y + 1)
    f = mean.unsqueeze(-1) + variance.sqrt().unsqueeze(-1) * _NODES
    return (_log_likelihood(name, y.unsqueeze(-1), f, noise) * _WEIGHTS).sum(-1)


@dataclass(frozen=True, eq=False)
class VariationalPosterior:
    """A process known through inducing values. Shapes: places (m, d), mean (m,), spread (m, m), both whitened."""

    kernel: Kernel
    likelihood: str
    noise: float
    places: Tensor
    factor: Tensor
    mean: Tensor
    spread: Tensor
    shift: float
    scale: float
    bound: float

    def latent(self, X: Numbers) -> tuple[Tensor, Tensor]:
        """Mean and variance of the latent function. Shapes: (k, d) -> (k,), (k,)."""
        new = rows("X", X, self.places.shape[1])
        half = torch.linalg.solve_triangular(self.factor, self.kernel(self.places, new), upper=False)
        return _marginals(self.kernel.diagonal(new), half, self.mean, self.spread)

    def predict(self, X: Numbers, *, noise: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and variance of the function in the units of y. Shapes: (k, d) -> (k,), (k,)."""
        mean, variance = self.latent(X)
        variance = variance + self.noise if noise and self.likelihood == "gaussian" else variance
        return mean * self.scale + self.shift, variance * self.scale**2

    def probabilities(self, X: Numbers) -> Tensor:
        """The probability of class 1, for the Bernoulli likelihood. Shapes: (k, d) -> (k,)."""
        if self.likelihood != "bernoulli":
            raise WonderlandError(
                f"Probabilities belong to the Bernoulli likelihood; this process has {self.likelihood!r}."
            )
        mean, variance = self.latent(X)
        return (torch.sigmoid(mean.unsqueeze(-1) + variance.sqrt().unsqueeze(-1) * _NODES) * _WEIGHTS).sum(-1)

    def rate(self, X: Numbers) -> Tensor:
        """The expected count, for the Poisson likelihood. Shapes: (k, d) -> (k,)."""
        if self.likelihood != "poisson":
            raise WonderlandError(f"Rates belong to the Poisson likelihood; this process has {self.likelihood!r}.")
        mean, variance = self.latent(X)
        return (mean + variance / 2).exp()


def _marginals(diagonal: Tensor, half: Tensor, mean: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
    variance = diagonal - half.square().sum(0) + (spread.T @ half).square().sum(0)
    return half.T @ mean, variance.clamp(min=1e-12)


def _half(kernel: Kernel, Z: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    K = kernel(Z)
    K = K + 1e-8 * float(K.detach().diagonal().mean()) * torch.eye(len(Z), dtype=torch.float64)
    factor = torch.linalg.cholesky(K)
    return factor, torch.linalg.solve_triangular(factor, kernel(Z, X), upper=False)


def fit_variational(
    kernel: Kernel,
    X: Numbers,
    y: Numbers,
    *,
    likelihood: str = "gaussian",
    noise: float = 1e-1,
    inducing: int = 100,
    steps: int = 300,
    batch: int = 512,
    rate: float = 0.05,
    natural_rate: float = 0.3,
    learn: bool = True,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> VariationalPosterior:
    r"""A sparse process of minibatches (SVGP), for numbers, two classes or counts.

    .. math:: \mathcal L = \sum_i \mathrm{E}_{q(f_i)} \log p(y_i | f_i) - \mathrm{KL}(q(v) \| N(0, I)), \qquad u = L_{ZZ} v

    The Gaussian q(v) takes natural-gradient steps,

    .. math:: \Lambda \leftarrow (1 - \rho) \Lambda + \rho \Bigl(I - 2 \sum_i h_i a_i a_i^\top\Bigr), \qquad
              \Lambda m \leftarrow (1 - \rho) \Lambda m + \rho \sum_i (g_i - 2 h_i \mu_i) a_i

    with g and h the derivatives of the expected log-likelihood by mean and variance, :math:`a_i = L_{ZZ}^{-1} k_{Zi}`;
    hyperparameters follow by Adam. With a Gaussian likelihood, all rows and :math:`\rho = 1` one step is exact.
    Shapes: X (n, d), y (n,). Papers: Hensman et al., 2013; Salimbeni et al., 2018.

    >>> from wonderland.probability.gaussian_process.kernels import RBF
    >>> x = torch.linspace(-3, 3, 60, dtype=torch.float64)
    >>> model = fit_variational(RBF(), x, (x > 0).double(), likelihood="bernoulli", inducing=10, steps=20)
    >>> bool(model.probabilities([2.0]) > 0.8)
    True
    """
    choice("likelihood", likelihood, LIKELIHOODS)
    places, target, shift, scale = _prepared(X, y, likelihood == "gaussian")
    if likelihood == "bernoulli" and bool(((target != 0) & (target != 1)).any()):
        raise WonderlandError("`y` has to hold 0 and 1 for the Bernoulli likelihood.")
    if likelihood == "poisson" and bool(((target < 0) | (target != target.round())).any()):
        raise WonderlandError("`y` has to hold counts, whole numbers from 0, for the Poisson likelihood.")
    if not noise > 0:
        raise WonderlandError(f"`noise` has to be above 0 for inducing points, not {noise}.")
    n = len(places)
    Z = greedy_places(kernel, places, inducing, seed=seed)
    theta = torch.cat([kernel.theta.detach(), torch.tensor([math.log(noise)], dtype=torch.float64)]).requires_grad_(
        learn
    )
    adam = torch.optim.Adam([theta], lr=rate) if learn else None
    eye = torch.eye(len(Z), dtype=torch.float64)
    precision, linear = eye.clone(), torch.zeros(len(Z), dtype=torch.float64)
    mean, spread = linear.clone(), eye.clone()
    order, bound = np.zeros(0, int), math.nan
    epoch = 0
    for step in range(steps):
        if len(order) < min(batch, n):
            order = np.concatenate([order, permutation(seed, epoch, n)])
            epoch += 1
        chosen, order = torch.from_numpy(order[: min(batch, n)].copy()), order[min(batch, n) :]
        x, t, share = places[chosen], target[chosen], n / len(chosen)
        with torch.no_grad():
            now = kernel.with_theta(theta[:-1].detach())
            _, a = _half(now, Z, x)
            mu, var = _marginals(now.diagonal(x), a, mean, spread)
        with torch.enable_grad():
            mu_, var_ = mu.requires_grad_(), var.requires_grad_()
            total = expected_log_likelihood(likelihood, t, mu_, var_, theta[-1].detach().exp()).sum()
            g, h = torch.autograd.grad(total, (mu_, var_))
        with torch.no_grad():
            rho = natural_rate if len(chosen) < n or likelihood != "gaussian" else 1.0
            precision = (1 - rho) * precision + rho * (eye + (a * (-2 * share * h)) @ a.T)
            linear = (1 - rho) * linear + rho * share * (a @ (g - 2 * h * mu.detach()))
            factor = torch.linalg.cholesky((precision + precision.T) / 2)
            mean = torch.cholesky_solve(linear.unsqueeze(1), factor).squeeze(1)
            spread = torch.linalg.solve_triangular(factor, eye, upper=False).T  # spread @ spread.T is the covariance
        if adam is not None or step == steps - 1 or progress is not None:
            with torch.enable_grad():
                here = kernel.with_theta(theta[:-1])
                _, a = _half(here, Z, x)
                mu, var = _marginals(here.diagonal(x), a, mean, spread)
                fit = share * expected_log_likelihood(likelihood, t, mu, var, theta[-1].exp()).sum()
                kl = 0.5 * (spread.square().sum() + mean @ mean - len(Z)) + factor.diagonal().log().sum()
                loss = (kl - fit) / n
            bound = -float(loss.detach()) * n
            if adam is not None and step < steps - 1:
                adam.zero_grad()
                loss.backward()
                adam.step()
        if progress is not None:
            progress(step, bound)
    final = kernel.with_theta(theta[:-1].detach())
    with torch.no_grad():
        factor, _ = _half(final, Z, places[:1])
    return VariationalPosterior(
        final, likelihood, float(theta[-1].detach().exp()), Z, factor, mean, spread, shift, scale, bound
    )
