"""Maximum likelihood and maximum a posteriori estimation."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers, positive

Density = Callable[[Tensor], Tensor]


def bernoulli_fit(x: Numbers) -> float:
    r"""The most likely probability of a one.

    .. math:: p^* = \frac1n \sum_i x_i

    Shapes: x (n,) of zeros and ones -> one number. Book: Alice A.6; D2L 22.6.

    >>> bernoulli_fit([1, 0, 1, 1])
    0.75
    """
    values = numbers("x", x, 1)
    if not bool(((values == 0) | (values == 1)).all()):
        raise WonderlandError("`x` has to hold only 0 and 1.")
    return float(values.mean())


def gaussian_fit(x: Numbers, *, unbiased: bool = False) -> tuple[float, float]:
    r"""The most likely mean and variance.

    .. math:: \mu^* = \frac1n \sum_i x_i, \qquad \sigma^{2*} = \frac1n \sum_i (x_i - \mu^*)^2

    The variance is on average (n - 1)/n of the true one; `unbiased` divides by n - 1 (Bessel), the default of
    `torch.var`. Shapes: x (n,) -> two numbers. Book: Alice A.6 (E.A.8-E.A.9).

    >>> gaussian_fit([1.0, 3.0]), gaussian_fit([1.0, 3.0], unbiased=True)
    ((2.0, 1.0), (2.0, 2.0))
    """
    values = numbers("x", x, 1)
    if unbiased and len(values) < 2:
        raise WonderlandError("`x` holds one value: the unbiased variance needs two.")
    return float(values.mean()), float(values.var(correction=int(unbiased)))


def negative_log_likelihood(log_density: Density, log_prior: Density | None = None) -> Density:
    r"""The objective of a fit: negative log likelihood, minus the log prior if given.

    .. math:: -\sum_i \log p(x_i | \theta) - \log p(\theta)

    Logs are summed, since a product of densities underflows. A flat prior (None) gives maximum likelihood; a Gaussian
    prior adds a ridge, a Laplace prior a lasso. `log_density` gives the log density of each sample.

    Shapes: log_density (k,) -> (n,), log_prior (k,) -> one number. Book: Alice 3.2.3, 3.3 (E.3.11-E.3.12), A.6; D2L 22.6.

    >>> objective = negative_log_likelihood(lambda theta: -theta * torch.tensor([1.0, 2.0]), gaussian_prior(1.0))
    >>> objective(torch.tensor([2.0]))
    tensor(8.9189)
    """

    def objective(theta: Tensor) -> Tensor:
        loss = -log_density(theta).sum()
        return loss if log_prior is None else loss - log_prior(theta).sum()

    return objective


def maximise(log_density: Density, start: Numbers, *, log_prior: Density | None = None, steps: int = 50) -> Tensor:
    r"""Maximum likelihood parameters, or maximum a posteriori ones with a prior, by L-BFGS.

    .. math:: \theta^* = \arg\max_\theta \sum_i \log p(x_i | \theta) + \log p(\theta)

    Parametrise positive parameters by exp or softplus. Finds a local maximum.

    Shapes: start (k,) -> (k,). Book: Alice 3.2.3, 3.3, A.6; D2L 22.6.

    >>> x = torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)
    >>> maximise(lambda theta: -0.5 * (x - theta) ** 2, [0.0]).round(decimals=6)
    tensor([3.], dtype=torch.float64)
    """
    theta = numbers("start", start, 1).detach().clone().requires_grad_()
    objective = negative_log_likelihood(log_density, log_prior)
    scale = 1 + float(objective(theta).detach().abs())
    if not math.isfinite(scale):
        raise WonderlandError("The likelihood is not finite at `start`: choose a point where every sample is possible.")
    solver = torch.optim.LBFGS(
        [theta], max_iter=100, tolerance_grad=1e-9, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        solver.zero_grad()
        value = objective(theta)
        value.backward()
        return value

    for _ in range(steps):
        solver.state.clear()
        solver.step(closure)
        closure()
        gradient = theta.grad
        if gradient is not None and float(gradient.norm()) <= 1e-7 * scale and float(theta.detach().abs().max()) < 1e8:
            return theta.detach()
        if not bool(theta.isfinite().all()) or float(theta.detach().abs().max()) >= 1e8:
            break
    raise WonderlandError("No maximum of the likelihood was found from `start`: add a prior, or start elsewhere.")


def gaussian_prior(scale: float) -> Density:
    r"""The log density of independent Gaussians around zero: as a regulariser, the squared norm.

    .. math:: \log p(\theta) = -\frac{\|\theta\|^2}{2 s^2} - \frac{k}{2} \log(2 \pi s^2)

    Shapes: (k,) -> one number. Book: Alice 3.3, 4.1.5.

    >>> gaussian_prior(1.0)(torch.zeros(1))
    tensor(-0.9189)
    """
    s = positive("scale", scale)
    return lambda theta: -(theta / s).square().sum() / 2 - theta.numel() * (math.log(s) + math.log(2 * math.pi) / 2)


def laplace_prior(scale: float) -> Density:
    r"""The log density of independent Laplace variables around zero: as a regulariser, the sum of absolute values.

    .. math:: \log p(\theta) = -\frac{\|\theta\|_1}{s} - k \log(2 s)

    Shapes: (k,) -> one number. Book: Alice 3.3.

    >>> laplace_prior(0.5)(torch.tensor([1.0, -1.0]))
    tensor(-4.)
    """
    s = positive("scale", scale)
    return lambda theta: -theta.abs().sum() / s - theta.numel() * math.log(2 * s)
