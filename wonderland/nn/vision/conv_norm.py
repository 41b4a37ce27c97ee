"""Convolution, batch norm, activation: the layer that most convolutional networks are made of."""

from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.channel.activations import Activation
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.contract.arguments import Checked, at_least_one


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
        x = self.norm(self.conv(x))
        return x if self.activation is None else self.activation(x)
