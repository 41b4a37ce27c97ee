"""Exponential families: log densities, moments from derivatives of the log-partition, and maximum likelihood."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.autodiff import grad, hessian
from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, count, numbers


@dataclass(frozen=True)
class Family:
    r"""An exponential family, given by T (`statistics`), A (`log_partition`) and log h (`log_base`).

    .. math::
        p(x | \eta) = h(x) \exp\left( \eta^\top T(x) - A(\eta) \right), \qquad
        \mathrm{E}[T(x)] = \nabla A(\eta), \quad \operatorname{Cov}[T(x)] = \nabla^2 A(\eta) \succeq 0

    so A is convex, and the likelihood is maximal where the mean of T under the model equals that of the data. Mean and
    covariance are derivatives of `log_partition`, taken by `wonderland.autodiff`.

    Shapes: natural (k,), statistics (n,) -> (n, k), log_partition (k,) -> one number. Book: D2L 22.5 (exponential
    family).

    >>> poisson.mean(poisson.natural(torch.tensor([3.0]))).round(decimals=6)
    tensor([3.], dtype=torch.float64)
    """

    name: str
    natural: Callable[[Tensor], Tensor]  # usual parameters (k,) -> natural ones (k,)
    statistics: Callable[[Tensor], Tensor]
    log_partition: Callable[[Tensor], Tensor]
    log_base: Callable[[Tensor], Tensor]

    def log_prob(self, x: Numbers, natural: Numbers) -> Tensor:
        """log p(x | η) for each of n values. Shapes: (n,), (k,) -> (n,)."""
        eta, values = numbers("natural", natural, 1), numbers("x", x, 1)
        return self.log_base(values) + self.statistics(values) @ eta - self.log_partition(eta)

    def mean(self, natural: Numbers) -> Tensor:
        """The mean of the statistics: the gradient of the log-partition. Shapes: (k,) -> (k,)."""
        return grad(self.log_partition)(numbers("natural", natural, 1))

    def covariance(self, natural: Numbers) -> Tensor:
        """The covariance of the statistics: the Hessian of the log-partition. Shapes: (k,) -> (k, k)."""
        return hessian(self.log_partition)(numbers("natural", natural, 1))

    def fit(self, x: Numbers, start: Numbers, *, steps: int = 100) -> Tensor:
        r"""The most likely natural parameters, by Newton's method on a convex function.

        .. math:: \nabla A(\eta^*) = \frac1n \sum_i T(x_i), \qquad
            \eta \leftarrow \eta - \alpha (\nabla^2 A)^{-1} (\nabla A - \bar T)

        Shapes: x (n,), start (k,) -> (k,).
        """
        target = self.statistics(numbers("x", x, 1)).mean(0)
        eta = numbers("start", start, 1)
        for _ in range(count("steps", steps)):
            move = -torch.linalg.lstsq(self.covariance(eta), self.mean(eta) - target).solution
            step_size = 1.0
            current = self.log_partition(eta) - eta @ target
            while step_size > 1e-12:
                candidate = eta + step_size * move
                value = self.log_partition(candidate) - candidate @ target
                if bool(value <= current + 1e-13 * current.abs()):
                    break
                step_size /= 2
            eta = eta + step_size * move
            if float(move.norm()) <= 1e-10 * (1 + float(eta.norm())):
                return eta
        raise WonderlandError(
            f"The {self.name} likelihood has no maximum for these values of `x`: their mean statistics are on the boundary of the possible ones."
        )


def _log_factorial(x: Tensor) -> Tensor:
    return torch.lgamma(x + 1)


def _gaussian_partition(eta: Tensor) -> Tensor:
    # For eta_2 >= 0 the integral diverges; infinity there keeps the line search in the domain.
    inside = torch.where(eta[1] < 0, eta[1], -torch.ones_like(eta[1]))
    value = -eta[0] * eta[0] / (4 * inside) - torch.log(-2 * inside) / 2
    return torch.where(eta[1] < 0, value, torch.full_like(value, torch.inf))


def _exponential_partition(eta: Tensor) -> Tensor:
    inside = torch.where(eta[0] < 0, eta[0], -torch.ones_like(eta[0]))
    return torch.where(eta[0] < 0, -torch.log(-inside), torch.full_like(inside, torch.inf))


bernoulli = Family(
    "Bernoulli",
    natural=torch.logit,  # of p
    statistics=lambda x: x.unsqueeze(1),
    log_partition=lambda eta: torch.nn.functional.softplus(eta[0]),
    log_base=torch.zeros_like,
)

poisson = Family(
    "Poisson",
    natural=lambda rate: rate.to(torch.float64).log(),
    statistics=lambda x: x.unsqueeze(1),
    log_partition=lambda eta: eta[0].exp(),
    log_base=lambda x: -_log_factorial(x),
)

gaussian = Family(
    "Gaussian",
    natural=lambda p: torch.stack([p[0] / p[1], -0.5 / p[1]]),  # of (mean, variance)
    statistics=lambda x: torch.stack([x, x.square()], 1),
    log_partition=_gaussian_partition,
    log_base=lambda x: torch.full_like(x, -0.5).mul(torch.tensor(2 * torch.pi, dtype=x.dtype).log()),
)

exponential = Family(
    "exponential",
    natural=torch.neg,  # of the rate
    statistics=lambda x: x.unsqueeze(1),
    log_partition=_exponential_partition,
    log_base=torch.zeros_like,
)


def binomial(trials: int) -> Family:
    r"""The binomial family with a given number of trials.

    .. math:: h(x) = \binom{n}{x}, \quad T(x) = x, \quad \eta = \log\frac{p}{1 - p}, \quad A(\eta) = n \log(1 + e^\eta)

    Shapes: natural (1,). Book: D2L 22.5.

    >>> binomial(10).mean([0.0])
    tensor([5.], dtype=torch.float64)
    """
    n = count("trials", trials)
    return Family(
        "binomial",
        natural=torch.logit,
        statistics=lambda x: x.unsqueeze(1),
        log_partition=lambda eta: n * torch.nn.functional.softplus(eta[0]),
        log_base=lambda x: (
            _log_factorial(torch.full_like(x, float(n))) - _log_factorial(x) - _log_factorial(float(n) - x)
        ),
    )


def categorical(classes: int) -> Family:
    r"""The categorical family with a given number of classes, and one natural parameter for each.

    .. math:: T(x) = \text{one-hot}(x), \quad \eta_i = \log p_i, \quad A(\eta) = \log \sum_i e^{\eta_i}, \quad
        \nabla A = \operatorname{softmax}

    Shapes: natural (classes,). Book: D2L 22.5; Alice 4.3.2.

    >>> categorical(3).mean([0.0, 0.0, 0.0])
    tensor([0.3333, 0.3333, 0.3333], dtype=torch.float64)
    """
    k = count("classes", classes, 2)
    return Family(
        "categorical",
        natural=torch.log,
        statistics=lambda x: torch.nn.functional.one_hot(x.long(), k).to(torch.float64),
        log_partition=lambda eta: torch.logsumexp(eta, 0),
        log_base=torch.zeros_like,
    )
