"""Regression losses: squared, absolute, Huber, quantile."""

from typing import Any

from torch import Tensor

from wonderland.tasks.losses.convention import check_number, check_pair, reduce_losses


def squared(prediction: Any, target: Any, *, mask: Any = None, weight: Any = None, reduction: Any = "mean") -> Tensor:
    r"""Squared error; its minimiser is the mean of the target.

    .. math:: l = (\hat y - y)^2

    Without the factor 1/2 of some books. Shapes: both (...). Book: Alice 4.1.1; D2L 3.1.

    >>> import torch
    >>> squared(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 2.0]))
    tensor(2.)
    """
    prediction, target = check_pair("squared", prediction, target, mask)
    return reduce_losses("squared", (prediction - target).square(), mask, weight, reduction)


def absolute(prediction: Any, target: Any, *, mask: Any = None, weight: Any = None, reduction: Any = "mean") -> Tensor:
    r"""Absolute error; its minimiser is the median of the target, so it is robust to outliers.

    .. math:: l = |\hat y - y|

    Shapes: both (...). Book: Alice 4.1.1.

    >>> import torch
    >>> absolute(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 2.0]))
    tensor(1.)
    """
    prediction, target = check_pair("absolute", prediction, target, mask)
    return reduce_losses("absolute", (prediction - target).abs(), mask, weight, reduction)


def huber(
    prediction: Any,
    target: Any,
    *,
    delta: float | int = 1.0,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""The Huber loss: squared for small errors, absolute for large ones, with a continuous gradient.

    .. math:: l = \begin{cases} e^2 / 2 & |e| \le \delta \\ \delta (|e| - \delta / 2) & \text{otherwise} \end{cases},
        \qquad e = \hat y - y

    Shapes: both (...). Book: Alice 4.1.1, with delta 1.

    >>> import torch
    >>> huber(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    delta = check_number("huber", "delta", delta, open=True)
    prediction, target = check_pair("huber", prediction, target, mask)
    error = (prediction - target).abs()
    clipped = error.clamp(max=delta)
    # With n = min(|e|, delta) both cases are n (|e| - n / 2), which does not overflow.
    return reduce_losses("huber", clipped * (error - clipped / 2), mask, weight, reduction)


def quantile(
    prediction: Any,
    target: Any,
    *,
    level: float | int,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""The pinball loss; its minimiser is the `level` quantile of the target.

    .. math:: l = \max(\alpha (y - \hat y),\; (\alpha - 1)(y - \hat y))

    At level 0.5 it is half the absolute error. Shapes: both (...). Paper: Koenker and Bassett, 1978.

    >>> import torch
    >>> quantile(torch.tensor([0.0, 0.0]), torch.tensor([1.0, -1.0]), level=0.9, reduction="none")
    tensor([0.9000, 0.1000])
    """
    level = check_number("quantile", "level", level, high=1.0, open=True)
    prediction, target = check_pair("quantile", prediction, target, mask)
    residual = target - prediction
    return reduce_losses(
        "quantile", residual.clamp(min=0) * level + (-residual).clamp(min=0) * (1 - level), mask, weight, reduction
    )
