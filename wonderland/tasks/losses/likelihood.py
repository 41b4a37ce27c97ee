"""Negative log-likelihoods: normal, Poisson, Student, negative binomial."""

import math
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks.losses.convention import apply_mask, check_float, check_pair, reduce_losses


def gaussian_nll(
    prediction: Any,
    target: Any,
    *,
    log_variance: Any,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""Negative log-likelihood of a normal distribution whose mean and variance are both learned.

    .. math:: l = \tfrac12 \bigl( \log 2\pi + s + (y - \mu)^2 e^{-s} \bigr), \qquad s = \log \sigma^2

    With a fixed variance it is squared error, up to a factor and a constant. Shapes: all three (...).
    Book: Alice 3.2.3; D2L 3.1.

    >>> gaussian_nll(torch.zeros(2), torch.zeros(2), log_variance=torch.zeros(2))
    tensor(0.9189)
    """
    name = "gaussian_nll"
    check_float(name, "log_variance", log_variance)
    prediction, target = check_pair(name, prediction, target, mask)
    if log_variance.shape != prediction.shape:
        raise WonderlandError(
            f"{name} got a log_variance of shape {tuple(log_variance.shape)} and a prediction of shape "
            f"{tuple(prediction.shape)}: give both the same shape; nothing is broadcast."
        )
    log_variance = apply_mask(name, log_variance, mask)
    losses = 0.5 * (math.log(2 * math.pi) + log_variance + (target - prediction).square() * torch.exp(-log_variance))
    return reduce_losses(name, losses, mask, weight, reduction)


def poisson_nll(
    prediction: Any, target: Any, *, mask: Any = None, weight: Any = None, reduction: Any = "mean"
) -> Tensor:
    r"""Negative log-likelihood of a count, from the logarithm of its rate.

    .. math:: l = e^{\hat y} - y \hat y + \log y!

    Shapes: both (...); prediction is the log-rate, target holds 0, 1, 2 ... Book: D2L 22.8 (the distribution).

    >>> poisson_nll(torch.zeros(2), torch.tensor([0.0, 2.0]), reduction="none")
    tensor([1.0000, 1.6931])
    """
    prediction, target = check_pair("poisson_nll", prediction, target, mask)
    if not torch.compiler.is_compiling():
        wrong = target[(target < 0) | (target != target.round())]
        if wrong.numel():
            raise WonderlandError(f"poisson_nll takes a target of counts 0, 1, 2 ..., not {float(wrong[0]):g}.")
    losses = torch.exp(prediction) - target * prediction + torch.lgamma(target + 1)
    return reduce_losses("poisson_nll", losses, mask, weight, reduction)


def student_nll(
    prediction: Any,
    target: Any,
    *,
    log_scale: Any,
    freedom: Any,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""Negative log-likelihood of Student's t distribution: a normal one whose tails allow outliers.

    .. math:: l = \log\Gamma(\tfrac\nu2) - \log\Gamma(\tfrac{\nu+1}2) + \tfrac12 \log(\nu\pi) + \log\sigma
        + \tfrac{\nu+1}2 \log\Bigl(1 + \frac{(y-\mu)^2}{\nu\sigma^2}\Bigr)

    Shapes: all four (...); `freedom` is :math:`\nu > 0`. Paper: Salinas et al., 2020 (DeepAR).

    >>> student_nll(torch.zeros(1), torch.zeros(1), log_scale=torch.zeros(1), freedom=torch.ones(1))
    tensor(1.1447)
    """
    name = "student_nll"
    prediction, target = check_pair(name, prediction, target, mask)
    log_scale = apply_mask(name, _same(name, "log_scale", log_scale, prediction), mask)
    freedom = _same(name, "freedom", freedom, prediction)
    if not torch.compiler.is_compiling() and not bool((freedom > 0).all()):
        raise WonderlandError(f"{name} takes freedom above 0, not {float(freedom.min()):g}.")
    spread = (target - prediction) * torch.exp(-log_scale)
    constant = torch.lgamma(freedom / 2) - torch.lgamma((freedom + 1) / 2) + 0.5 * torch.log(math.pi * freedom)
    losses = constant + log_scale + (freedom + 1) / 2 * torch.log1p(spread.square() / freedom)
    return reduce_losses(name, losses, mask, weight, reduction)


def negative_binomial_nll(
    prediction: Any, target: Any, *, dispersion: Any, mask: Any = None, weight: Any = None, reduction: Any = "mean"
) -> Tensor:
    r"""Negative log-likelihood of a count whose variance exceeds its mean, from the mean.

    .. math:: l = -\log\Gamma(y + r) + \log y! + \log\Gamma(r) + r \log\frac{r + \mu}{r} + y \log\frac{r + \mu}{\mu},
        \qquad r = 1/\alpha, \quad \operatorname{Var} = \mu + \alpha\mu^2

    Shapes: all three (...); `prediction` is the mean :math:`\mu > 0`, `dispersion` is :math:`\alpha > 0`, target holds 0, 1, 2 ...
    Paper: Salinas et al., 2020 (DeepAR).

    >>> negative_binomial_nll(torch.ones(1), torch.zeros(1), dispersion=torch.ones(1))
    tensor(0.6931)
    """
    name = "negative_binomial_nll"
    prediction, target = check_pair(name, prediction, target, None)
    dispersion = _same(name, "dispersion", dispersion, prediction)
    if not torch.compiler.is_compiling():
        if float(target.min()) < 0:
            raise WonderlandError(f"{name} takes a target of counts 0, 1, 2 ..., not {float(target.min()):g}.")
        if not bool((prediction > 0).all() and (dispersion > 0).all()):
            raise WonderlandError(f"{name} takes a mean and a dispersion above 0.")
    r = 1 / dispersion
    losses = torch.lgamma(r) + torch.lgamma(target + 1) - torch.lgamma(target + r)
    losses = losses + r * torch.log1p(prediction / r) + target * torch.log1p(r / prediction)
    return reduce_losses(name, losses, mask, weight, reduction)


def _same(name: str, argument: str, value: Any, prediction: Tensor) -> Tensor:
    """A further parameter, in the shape of the prediction."""
    check_float(name, argument, value)
    if value.shape != prediction.shape:
        raise WonderlandError(
            f"{name} got a {argument} of shape {tuple(value.shape)} and a prediction of shape "
            f"{tuple(prediction.shape)}: give both the same shape; nothing is broadcast."
        )
    return value
