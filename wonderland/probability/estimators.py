"""Bias, variance and mean squared error of an estimator by repeated sampling, and the standardised mean."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, count, numbers
from wonderland.probability.monte_carlo import Estimate, average


@dataclass(frozen=True)
class Quality:
    """Bias and mean squared error of an estimator with their standard errors, and its variance."""

    bias: Estimate
    variance: float
    mse: Estimate


def quality(
    estimator: Callable[[Tensor], Tensor], sample: Callable[[int], Tensor], truth: float, repetitions: int = 10_000
) -> Quality:
    r"""Bias, variance and mean squared error of an estimator, over many samples of the same size.

    .. math::
        \operatorname{MSE} = \mathrm{E}[(\hat\theta - \theta)^2]
        = \underbrace{(\mathrm{E}[\hat\theta] - \theta)^2}_{\text{bias}^2} + \operatorname{Var}[\hat\theta]

    The identity holds exactly for the numbers returned. A bias within two standard errors of 0 is not significant.

    Shapes: sample(r) -> (r, n), estimator (r, n) -> (r,). Book: D2L 22.7; Alice A.6 (Bessel).

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> result = quality(lambda x: x.var(1, correction=0), lambda r: torch.randn(r, 5), truth=1.0)
    >>> abs(result.bias.value + 1 / 5) < 4 * result.bias.error
    True
    """
    estimates = estimator(sample(count("repetitions", repetitions, 2)))
    if tuple(estimates.shape) != (repetitions,):
        raise WonderlandError(
            f"`estimator` returned shape {tuple(estimates.shape)} for {repetitions} samples: it has to return one number each."
        )
    errors = numbers("estimator", estimates) - truth
    return Quality(average(errors), float(errors.var(correction=0)), average(errors.square()))


def standardised_mean(samples: Numbers, mean: float, variance: float) -> Tensor:
    r"""Means standardised to mean 0 and variance 1: close to a standard Gaussian when each is over many draws.

    .. math:: z = \frac{\bar x - \mu}{\sigma / \sqrt n} \;\to\; N(0, 1)

    whatever the distribution of the draws, as long as it has a variance. Shapes: samples (r, n) -> (r,).
    Book: D2L 22.5 (central limit theorem).

    >>> standardised_mean([[1.0, 3.0, 1.0, 3.0]], mean=1.0, variance=1.0)
    tensor([2.], dtype=torch.float64)
    """
    draws = numbers("samples", samples, 2)
    if not variance > 0:
        raise WonderlandError(f"`variance` has to be a positive number, not {variance}.")
    return (draws.mean(1) - mean) / (variance / draws.shape[1]) ** 0.5
