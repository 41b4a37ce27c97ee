"""Convolution, batch norm, activation: the layer that most convolutional networks are made of."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.channel.activations import Activation, relu
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.contract import fast_path
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.contract.hooks import has_no_hooks


@part
class ConvNorm(Checked, nn.Module):
    r"""A convolution without bias, batch normalisation, and an activation (None for none).

    .. math:: y = \phi(\mathrm{BN}(W * x))

    `size` is the side of the kernel, `padding` half of it unless given, so that a `stride` of 1 keeps the map's size for
    odd kernels. With `groups`, channels are convolved in so many groups, `groups=dim` is depthwise.

    Shapes: x (b, dim, h, w) -> (b, out, h / stride, w / stride), rounded up for odd kernels.
    Book: Alice 9.3; D2L 8.5. Paper: Ioffe and Szegedy, 2015.

    >>> import torch
    >>> ConvNorm(3, 8, 3, stride=2)(torch.zeros(2, 3, 9, 9)).shape
    torch.Size([2, 8, 5, 5])
    """

    def __init__(
        self,
        dim: int,
        out: int,
        size: int = 3,
        *,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        eps: float | int = 1e-5,
        activation: str | Activation | None = "relu",
    ):
        super().__init__()
        at_least_one("ConvNorm", dim=dim, out=out, size=size, stride=stride, groups=groups)
        padding = (size - 1) // 2 if padding is None else padding
        self.conv = nn.Conv2d(dim, out, size, stride=stride, padding=padding, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(out, eps=float(eps))
        self.activation = None if activation is None else resolve(activation)

    def forward(self, x: Tensor) -> Tensor:
        if (fused := fast_path.images(self, x)) is not None:
            return fused
        x = self.norm(self.conv(x))
        if self.activation is relu and overwritable(self.norm):
            return x.relu_()
        return x if self.activation is None else self.activation(x)


def overwritable(norm: nn.Module, *around: nn.Module) -> bool:
    """Whether the output of a batch norm may be written to: its gradient does not need it, and no hook has seen it."""
    return type(norm) is nn.BatchNorm2d and not torch.compiler.is_compiling() and has_no_hooks(norm, *around)


def rectified_sum(y: Tensor, x: Tensor, last: Any, convs: nn.Module) -> Tensor:
    """relu(x + y), over y where that may be written to: y is the output of `last`, a `ConvNorm` without activation in `convs`."""
    if last.activation is None and overwritable(last.norm, last, convs) and y.shape == x.shape and y.dtype == x.dtype:
        return y.add_(x).relu_()
    return F.relu(y + x)
