"""A linear layer from few features: the same map, with its slopes as the products that libraries are quick at."""

from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.ops import native

FEW = 16  # features from which the usual products are as quick
MANY = 256  # rows below which nothing is gained


def narrow_linear(
    x: Float[Tensor, "*rows few"], weight: Float[Tensor, "d few"], bias: Float[Tensor, " d"] | None = None
) -> Float[Tensor, "*rows d"]:
    r"""What `torch.nn.functional.linear` computes, :math:`y = W x + b`.

    Where x has few features, the slope of W is a tall matrix and that of x has few columns, for which products take up to
    ten times as long as for the same lying on their side: :math:`dW = (x^\top dy)^\top` and :math:`dx = (W^\top dy^\top)^\top`.

    >>> narrow_linear(torch.ones(1, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 7.]])
    """
    if (
        x.shape[-1] > FEW
        or x.numel() < MANY * x.shape[-1]
        or not native.no_dispatch_mode(x, weight, bias)
        or native.is_transformed()
    ):
        return reference(x, weight, bias)
    return cast("Tensor", _Narrow.apply(x, weight, bias))


def reference(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The equation."""
    return F.linear(x, weight, bias)


class _Narrow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # pyright: ignore
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:  # pyright: ignore
        x, weight = ctx.saved_tensors
        rows = dy.flatten(0, -2)
        dx = (weight.t() @ rows.t()).t().unflatten(0, dy.shape[:-1]) if ctx.needs_input_grad[0] else None
        return dx, (x.flatten(0, -2).t() @ rows).t(), rows.sum(0) if ctx.biased else None
