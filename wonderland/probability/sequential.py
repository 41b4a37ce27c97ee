"""Sequential Bayesian inference with conjugate priors: each posterior is the prior of the next update."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Beta, MultivariateNormal, Normal

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers, positive


@dataclass(frozen=True)
class BetaBinomial:
    r"""The Beta posterior of a probability, updated by successes and failures.

    .. math:: p(\theta) = \operatorname{Beta}(a, b) \;\to\; p(\theta | k, n) = \operatorname{Beta}(a + k, b + n - k)

    Two updates are one update on the union, in any order. Book: Alice 3.3; D2L 2.6.

    >>> posterior = BetaBinomial().update(successes=7, trials=10)
    >>> posterior, round(posterior.predictive, 4)
    (BetaBinomial(a=8.0, b=4.0), 0.6667)
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self):
        positive("a", self.a)
        positive("b", self.b)

    def update(self, successes: int, trials: int) -> "BetaBinomial":
        """The posterior after these trials."""
        if not 0 <= successes <= trials:
            raise WonderlandError(f"`successes` has to lie between 0 and `trials`; they are {successes} and {trials}.")
        return BetaBinomial(self.a + successes, self.b + trials - successes)

    @property
    def posterior(self) -> Beta:
        """The posterior as a distribution."""
        return Beta(torch.tensor(self.a, dtype=torch.float64), torch.tensor(self.b, dtype=torch.float64))

    @property
    def predictive(self) -> float:
        """The probability that the next trial succeeds."""
        return self.a / (self.a + self.b)


@dataclass(frozen=True)
class GaussianMean:
    r"""The Gaussian posterior of the mean of a Gaussian with known noise variance, updated by samples.

    .. math::
        \frac{1}{s_n^2} = \frac{1}{s_0^2} + \frac{n}{\sigma^2}, \qquad
        \mu_n = s_n^2 \left( \frac{\mu_0}{s_0^2} + \frac{\sum_i x_i}{\sigma^2} \right)

    Book: Alice 3.3; D2L 22.6.

    >>> GaussianMean(mean=0.0, variance=1.0, noise=1.0).update([2.0])
    GaussianMean(mean=1.0, variance=0.5, noise=1.0)
    """

    mean: float
    variance: float
    noise: float

    def __post_init__(self):
        positive("variance", self.variance)
        positive("noise", self.noise)

    def update(self, x: Numbers) -> "GaussianMean":
        """The posterior after samples (n,)."""
        samples = numbers("x", x, 1)
        variance = 1 / (1 / self.variance + len(samples) / self.noise)
        mean = variance * (self.mean / self.variance + float(samples.sum()) / self.noise)
        return GaussianMean(mean, variance, self.noise)

    @property
    def posterior(self) -> Normal:
        """The posterior of the mean."""
        return _normal(self.mean, self.variance)

    @property
    def predictive(self) -> Normal:
        """The distribution of the next sample: variances of mean and noise add."""
        return _normal(self.mean, self.variance + self.noise)


def _normal(mean: float, variance: float) -> Normal:
    return Normal(torch.tensor(mean, dtype=torch.float64), torch.tensor(variance, dtype=torch.float64).sqrt())


@dataclass(frozen=True, eq=False)
class GaussianWeights:
    r"""The Gaussian posterior of the weights of a linear model with known noise variance, updated by rows.

    .. math::
        \Lambda_n = \Lambda_0 + \frac{1}{\sigma^2} X^\top X, \qquad
        \Lambda_n \mu_n = \Lambda_0 \mu_0 + \frac{1}{\sigma^2} X^\top y

    From the prior N(0, s^2 I) its mean is ridge regression with λ = σ²/s². Shapes: precision (c, c), shift (c,) = Λμ.
    Book: Alice 3.3 (C3-23), 4.1.5.

    >>> posterior = GaussianWeights.prior(dim=1, variance=1.0, noise=1.0).update([[1.0]], [2.0])
    >>> posterior.mean
    tensor([1.], dtype=torch.float64)
    """

    precision: Tensor
    shift: Tensor
    noise: float

    @classmethod
    def prior(cls, dim: int, variance: float, noise: float) -> "GaussianWeights":
        """The prior with mean 0 and the same variance for each weight."""
        precision = torch.eye(dim, dtype=torch.float64) / positive("variance", variance)
        return cls(precision, torch.zeros(dim, dtype=torch.float64), positive("noise", noise))

    def update(self, X: Numbers, y: Numbers) -> "GaussianWeights":
        """The posterior after rows X (n, c) with targets y (n,)."""
        rows, targets = numbers("X", X, 2), numbers("y", y, 1)
        if rows.shape != (len(targets), len(self.shift)):
            raise WonderlandError(
                f"`X` has shape {tuple(rows.shape)} for {len(targets)} targets and {len(self.shift)} weights."
            )
        return GaussianWeights(
            self.precision + rows.T @ rows / self.noise, self.shift + rows.T @ targets / self.noise, self.noise
        )

    @property
    def mean(self) -> Tensor:
        """The most probable weights (c,)."""
        return torch.linalg.solve(self.precision, self.shift)

    @property
    def posterior(self) -> MultivariateNormal:
        """The posterior as a distribution."""
        return MultivariateNormal(self.mean, precision_matrix=self.precision)

    def predictive(self, X: Numbers) -> Normal:
        r"""The distribution of the targets of new rows, weights integrated out: :math:`N(X \mu, x^\top \Lambda^{-1} x + \sigma^2)`. (n, c) -> (n,)."""
        rows = numbers("X", X, 2)
        if rows.shape[1] != len(self.shift):
            raise WonderlandError(f"`X` has {rows.shape[1]} columns for {len(self.shift)} weights.")
        spread = (rows * torch.linalg.solve(self.precision, rows.T).T).sum(1)
        return Normal(rows @ self.mean, (spread + self.noise).sqrt())
