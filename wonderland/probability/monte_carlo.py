"""Monte Carlo estimates of expectations, with standard errors."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution, Normal

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, level, numbers


@dataclass(frozen=True)
class Estimate:
    """An average of n draws with its standard error."""

    value: float
    error: float
    n: int

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the expectation, by the central limit theorem."""
        probability = torch.tensor((1 + level("confidence", confidence)) / 2, dtype=torch.float64)
        half_width = self.error * float(Normal(0.0, 1.0).icdf(probability))
        return self.value - half_width, self.value + half_width

    def __str__(self):
        return f"{self.value:.6g} ± {self.error:.2g} ({self.n} draws)"


def average(values: Numbers) -> Estimate:
    r"""The Monte Carlo estimate of an expectation from independent draws of f(x).

    .. math::
        \mathrm{E}[f(x)] \approx \frac1n \sum_i f(x_i), \qquad
        \text{error} = \frac{1}{\sqrt n} \sqrt{\frac{1}{n - 1} \sum_i (f(x_i) - \bar f)^2}

    The error falls like :math:`n^{-1/2}`: four times the draws halve it.

    Shapes: values (n,), n >= 2 -> an Estimate. Book: Alice A.4 (E.A.7); D2L 22.7.

    >>> average([1.0, 2.0, 3.0]).value
    2.0
    """
    draws = numbers("values", values, 1)
    if len(draws) < 2:
        raise WonderlandError("`values` holds one draw: an error bar needs two.")
    return Estimate(float(draws.mean()), float(draws.std()) / len(draws) ** 0.5, len(draws))


def expectation(f: Callable[[Tensor], Tensor], distribution: Distribution, draws: int = 10_000) -> Estimate:
    r"""The mean of f under a distribution, from fresh draws: seed torch to repeat it.

    .. math:: \mathrm{E}_{x \sim p}[f(x)] \approx \frac1n \sum_i f(x_i)

    Shapes: f (draws, ...) -> (draws,). Book: Alice A.4 (E.A.6-E.A.7).

    >>> _ = torch.manual_seed(0)
    >>> low, high = expectation(lambda x: x**2, Normal(0.0, 1.0)).interval(0.999)
    >>> low < 1 < high
    True
    """
    values = f(distribution.sample((draws,)))
    if values.dim() != 1 or len(values) != draws:
        raise WonderlandError(
            f"`f` returned shape {tuple(values.shape)} for {draws} draws: it has to return one number for each."
        )
    return average(values)


def generalisation_gap(training: Numbers, held_out: Numbers) -> Estimate:
    r"""How much worse a model does on fresh rows than on those it was fitted to: expected risk less empirical risk.

    .. math::
        \mathrm{E}_{(x, y)}[L(y, f(x))] - \frac1n \sum_{i=1}^n L(y_i, f(x_i)), \qquad
        \text{the expectation by the mean over held-out rows}

    The empirical risk is a known number, since its rows are all there are; the error is that of the held-out mean. An
    `interval` that lies above 0 means that the model overfits. The held-out rows must not have chosen the model.

    Shapes: losses of single rows, training (n,) and held_out (m,), m >= 2. Book: Alice 3.2.1; D2L 3.6.1.

    >>> round(generalisation_gap([0.1, 0.3], [0.5, 0.9, 0.7]).value, 6)
    0.5
    """
    expected = average(held_out)
    empirical = float(numbers("training", training, 1).mean())
    return Estimate(expected.value - empirical, expected.error, expected.n)


def sampled_kl(p: Distribution, q: Distribution, draws: int = 10_000) -> Estimate:
    r"""A Monte Carlo estimate of the KL divergence, for pairs of distributions without a formula.

    .. math:: \operatorname{KL}(p \| q) \approx \frac1n \sum_i \left[ \log p(x_i) - \log q(x_i) \right], \qquad x_i \sim p

    A single estimate may be negative, the divergence itself never is. Book: Alice A.5.

    >>> _ = torch.manual_seed(0)
    >>> abs(sampled_kl(Normal(0.0, 1.0), Normal(1.0, 1.0)).value - 0.5) < 0.05
    True
    """

    def log_ratio(x: Tensor) -> Tensor:
        return p.log_prob(x) - q.log_prob(x)

    return expectation(log_ratio, p, draws)


def predictive_average(log_probabilities: Tensor) -> Tensor:
    r"""The posterior predictive of k models drawn from a posterior: the log of their mean probability.

    .. math:: \log p(y | x) = \log \frac1k \sum_i p(y | f_i(x)), \qquad f_i \sim p(f | S)

    Probabilities are averaged, not logits. The posterior density does not appear as a factor, since the models are drawn
    from it (the book prints it once more). Shapes: (k, ...) -> (...). Book: Alice 3.3 (E.3.9-E.3.10).

    >>> predictive_average(torch.tensor([[0.5, 0.5], [0.9, 0.1]]).log()).exp()
    tensor([0.7000, 0.3000])
    """
    if not isinstance(log_probabilities, Tensor) or log_probabilities.dim() < 1 or not len(log_probabilities):
        raise WonderlandError("`log_probabilities` has to be a tensor with the models first, one at least.")
    if bool((log_probabilities > 1e-4).any()) and not log_probabilities.is_complex():
        high = float(log_probabilities.max())
        raise WonderlandError(f"`log_probabilities` holds {high:g}: a logarithm of a probability is at most 0.")
    return torch.logsumexp(log_probabilities, 0) - math.log(len(log_probabilities))
