"""Batch norm with the statistics of the whole batch, although each process has only its share of it."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from wonderland.nn.norms.batch_norm import BatchNorm


class _Sum(torch.autograd.Function):
    """The sum over processes; its gradient is the sum over processes too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        total = x.contiguous().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _Sum.forward(ctx, gradient)


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_variance: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    rate: float,
    eps: float,
) -> Tensor:
    r"""Batch norm in training, over the examples of all processes; the running statistics are updated in place.

    .. math:: \mu = \frac{\sum_r \sum_i x_{ri}}{\sum_r n_r}, \qquad \sigma^2 = \frac{\sum_r \sum_i (x_{ri} - \mu)^2}{\sum_r n_r}

    Shapes: x (b, dim, ...) -> (b, dim, ...). Book: D2L 13.6.
    """
    wide = (1, -1, *[1] * (x.dim() - 2))
    axes = [0, *range(2, x.dim())]
    sums = _Sum.apply(torch.cat([x.sum(axes), x.new_tensor([x.numel() / x.shape[1]])]))
    count = sums[-1].detach()
    mean = sums[:-1] / count
    centred = x - mean.view(wide)
    variance = _Sum.apply(centred.square().sum(axes)) / count
    with torch.no_grad():
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), rate)
        if running_variance is not None:
            running_variance.lerp_((variance * (count / (count - 1))).to(running_variance.dtype), rate)
    y = centred * torch.rsqrt(variance + eps).view(wide)
    y = y if weight is None else y * weight.view(wide)
    return y if bias is None else y + bias.view(wide)


class _Synchronised(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.batch_norm:
            names = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
            given: dict[str, Any] = {"weight": None, "bias": None, "training": False, "momentum": 0.1, "eps": 1e-5}
            given |= dict(zip(names, args, strict=False)) | kwargs
            if given["training"]:
                return batch_norm(
                    given["input"],
                    given["running_mean"],
                    given["running_var"],
                    given["weight"],
                    given["bias"],
                    given["momentum"],
                    given["eps"],
                )
        return func(*args, **kwargs)


def synchronised_batch_norm(model: nn.Module) -> AbstractContextManager[Any]:
    """Inside, batch norms of a model in training see the batch of all processes. Nothing changes for a model without any."""
    norms = any(isinstance(m, BatchNorm | nn.modules.batchnorm._BatchNorm) for m in model.modules())
    return _Synchronised() if norms else nullcontext()
