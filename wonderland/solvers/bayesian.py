"""Bayesian linear regression: a Gaussian over the weights, with prior and noise learned from the evidence."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, level
from wonderland.solvers.data import rows, targets


@dataclass(frozen=True, eq=False)
class BayesianFit:
    """The posterior of the weights. Shapes: weights (c,), covariance (c, c); `noise` and `prior` are variances."""

    weights: Tensor
    bias: float
    covariance: Tensor
    centre: Tensor
    noise: float
    prior: float
    evidence: float
    rows: int

    def predict(self, X: Numbers, *, noise: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and variance, of the line or of observations. Shapes: (m, c) -> (m,), (m,)."""
        matrix = rows("X", X, len(self.weights))
        apart = matrix - self.centre
        variance = torch.einsum("nc,cd,nd->n", apart, self.covariance, apart) + self.noise / self.rows
        return matrix @ self.weights + self.bias, variance + self.noise if noise else variance

    def band(self, X: Numbers, share: float = 0.95) -> tuple[Tensor, Tensor]:
        """The ends of the interval that holds an observation with that probability. Shapes: (m, c) -> (m,), (m,)."""
        mean, variance = self.predict(X, noise=True)
        reach = NormalDist().inv_cdf((1 + level("share", share)) / 2) * variance.sqrt()
        return mean - reach, mean + reach


def bayesian_regression(
    X: Numbers, y: Numbers, *, noise: float | None = None, prior: float | None = None, steps: int = 1000
) -> BayesianFit:
    r"""The posterior of a line's weights.

    .. math:: w \sim N(0, s^2 I), \quad y \sim N(Xw + b, \sigma^2) \quad \Rightarrow \quad
              w | D \sim N\bigl(\tfrac{1}{\sigma^2} S X^\top y,\ S\bigr), \qquad S = \bigl(\tfrac{1}{\sigma^2} X^\top X + \tfrac{1}{s^2} I\bigr)^{-1}

    The bias is free: X and y are centred. Variances that are not given maximise the evidence, by MacKay's fixed point

    .. math:: \gamma = \sum_i \frac{\lambda_i}{\lambda_i + \sigma^2 / s^2}, \qquad s^2 = \frac{\|w\|^2}{\gamma}, \qquad
              \sigma^2 = \frac{\|y - Xw\|^2}{n - \gamma - 1}

    with :math:`\lambda` the eigenvalues of :math:`X^\top X`. Dependent columns are no trouble.
    Shapes: X (n, c), y (n,). Book: Alice 3.3. Paper: MacKay, 1992.

    >>> fit = bayesian_regression([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9])
    >>> fit.predict([[1.5]])[0].round(decimals=2)
    tensor([1.5000], dtype=torch.float64)
    """
    matrix = rows("X", X)
    target = targets(matrix, y)
    for name, value in (("noise", noise), ("prior", prior)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise WonderlandError(f"`{name}` is a variance above 0, not {value}.")
    n, c = matrix.shape
    if n < 3:
        raise WonderlandError(f"`X` has {n} rows: Bayesian regression needs 3 or more.")
    centre, middle = matrix.mean(0), float(target.mean())
    design, t = matrix - centre, target - middle
    values, vectors = torch.linalg.eigh(design.T @ design)
    values = values.clamp(min=0)
    toward = vectors.T @ (design.T @ t)
    spread = max(float(t.square().mean()), 1e-12)
    sigma = noise if noise is not None else spread / 2
    width = prior if prior is not None else 1.0
    for _ in range(steps):
        w = toward / (values + sigma / width)
        gamma = float((values / (values + sigma / width)).sum())
        error = float(t @ t) - 2 * float(w @ toward) + float((values * w.square()).sum())
        new_width = prior if prior is not None else max(float(w @ w) / max(gamma, 1e-12), 1e-12)
        new_sigma = noise if noise is not None else max(error / max(n - gamma - 1, 1e-6), 1e-12 * spread)
        done = abs(math.log(new_width / width)) + abs(math.log(new_sigma / sigma)) < 1e-10
        width, sigma = new_width, new_sigma
        if done:
            break
    w = toward / (values + sigma / width)
    error = float(t @ t) - 2 * float(w @ toward) + float((values * w.square()).sum())
    evidence = -0.5 * (
        error / sigma + float(w @ w) / width + float((values / sigma + 1 / width).log().sum())
        + c * math.log(width) + (n - 1) * math.log(2 * math.pi * sigma) + math.log(n)
    )  # fmt: skip
    weights = vectors @ w
    covariance = (vectors / (values / sigma + 1 / width)) @ vectors.T
    return BayesianFit(weights, middle - float(centre @ weights), covariance, centre, sigma, width, evidence, n)
