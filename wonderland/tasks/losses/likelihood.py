"""Negative log-likelihoods of the normal and the Poisson distribution."""

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
