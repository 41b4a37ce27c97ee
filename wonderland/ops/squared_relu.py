"""The squared rectifier: two passes over memory forward, three in one buffer backward."""

from typing import Any, cast

import torch
from torch import Tensor

from wonderland.ops import native, shapes


def squared_relu(x: Tensor) -> Tensor:
    r""":math:`\max(x, 0)^2`, with slope :math:`2 \max(x, 0)`; only the input is kept for it.

    Book: Alice 13.4. Paper: So et al., 2021.

    >>> squared_relu(torch.tensor([-1.0, 3.0]))
    tensor([0., 9.])
    """
    shapes.tensor("squared_relu", x=x)
    if native.is_transformed() or not x.is_floating_point():
        return reference(x)
    return cast("Tensor", _SquaredRelu.apply(x))


def reference(x: Tensor) -> Tensor:
    """The equation."""
    return x.relu().square()


class _SquaredRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(x)
        found = x.relu()
        return found.mul_(found)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            return 2 * x.relu() * grad
        return x.relu().mul_(grad).mul_(2)
