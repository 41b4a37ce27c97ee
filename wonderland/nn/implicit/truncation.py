"""Randomised truncation: gradients through time stop at random places, and on average they are those of the whole."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked


class _Cut(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return gradient * ctx.factor, None


@part
class RandomTruncation(Checked, nn.Module):
    r"""The identity, whose gradient is stopped with probability 1 - keep and scaled otherwise.

    .. math:: h' = h, \qquad \frac{\partial L}{\partial h} = \frac{\xi}{\pi} \frac{\partial L}{\partial h'}, \quad \xi \sim \text{Bernoulli}(\pi)

    Put it on the state between two steps of a recurrence: the expected gradient is the full one. In evaluation mode nothing
    is cut. Shapes: any. Book: D2L 9.7.1. Paper: Tallec and Ollivier, 2017.

    >>> x = torch.ones(1, requires_grad=True)
    >>> RandomTruncation(keep=1.0)(x).backward()
    >>> x.grad.item()
    1.0
    """

    def __init__(self, keep: float = 0.9):
        super().__init__()
        if not 0 < keep <= 1:
            raise WonderlandError(f"keep must be above 0 and at most 1, not {keep!r}.")
        self.keep = keep

    def forward(self, h: Tensor) -> Tensor:
        if not self.training or self.keep == 1:
            return h
        stays = bool(torch.rand(()) < self.keep)
        return _Cut.apply(h, 1 / self.keep if stays else 0.0)  # pyright: ignore
