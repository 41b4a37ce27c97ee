"""Residual blocks without normalisation: weights are standardised, and the scale of signals is kept by arithmetic."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.arguments import Checked, at_least_one

RELU_GAIN = math.sqrt(2 / (1 - 1 / math.pi))  # the inverse spread of a rectified normal number


@part
class ScaledConvolution(Checked, nn.Module):
    r"""A convolution whose kernels have mean 0 and variance 1 / fan-in whatever the weights, with a gain for each output.

    .. math:: \hat W_{oi} = g_o \, \frac{W_{oi} - \mu_o}{\sqrt{\max(N \sigma_o^2, \epsilon)}}

    N is the fan-in, mean and variance are over it. An input of independent numbers of variance 1 and mean 0 gives outputs of variance
    g^2, so nothing has to be measured on the batch, as batch norm does.

    Shapes: x (b, dim, h, w) -> (b, out, h / stride, w / stride), rounded up. Book: Alice 9.3. Paper: Brock et al., 2021.

    >>> ScaledConvolution(3, 8, stride=2)(torch.zeros(2, 3, 9, 9)).shape
    torch.Size([2, 8, 5, 5])
    """

    def __init__(self, dim: int, out: int, size: int = 3, *, stride: int = 1, groups: int = 1, eps: float | int = 1e-4):
        super().__init__()
        at_least_one("ScaledConvolution", dim=dim, out=out, size=size, stride=stride, groups=groups)
        self.conv = nn.Conv2d(dim, out, size, stride=stride, padding=size // 2, groups=groups)
        nn.init.zeros_(self.conv.bias)  # pyright: ignore[reportArgumentType]
        self.gain = nn.Parameter(torch.ones(out, 1, 1, 1))
        self.eps = float(eps)

    def kernels(self) -> Tensor:
        """The standardised weights."""
        weight = self.conv.weight
        variance, mean = torch.var_mean(weight, (1, 2, 3), correction=0, keepdim=True)
        return self.gain * (weight - mean) * torch.rsqrt((variance * weight[0].numel()).clamp_min(self.eps))

    def forward(self, x: Tensor) -> Tensor:
        conv: Any = self.conv
        return F.conv2d(x, self.kernels(), conv.bias, conv.stride, conv.padding, conv.dilation, conv.groups)


@part
class NormFreeBlock(Checked, nn.Module):
    r"""A residual block that keeps track of its variance instead of normalising.

    .. math:: y = s(x) + \alpha \lambda\, f(\gamma\, \mathrm{relu}(x) / \beta)

    `beta` is the expected spread of the input, by which it is divided; f are two scaled convolutions, the second one after another
    rectifier; `alpha` is how much a block adds to the spread, so the next one expects :math:`\beta^2 + \alpha^2`; :math:`\lambda` begins
    at 0, so that a deep network begins as its shortcuts. Where the shape changes, the shortcut is a 1 x 1 convolution of the scaled input
    (averaged over 2 x 2 pixels for a stride), and the spread begins again at 1.

    Shapes: x (b, dim, h, w) -> (b, out, h / stride, w / stride), rounded up. Book: Alice 9.3. Paper: Brock et al., 2021.

    >>> NormFreeBlock(4, 8, stride=2)(torch.zeros(2, 4, 9, 9)).shape
    torch.Size([2, 8, 5, 5])
    """

    def __init__(
        self, dim: int, out: int, *, stride: int = 1, alpha: float | int = 0.2, beta: float | int = 1.0, gain: float | int = 0.0
    ):  # fmt: skip
        super().__init__()
        self.stride, self.alpha, self.beta = stride, float(alpha), float(beta)
        self.convs = nn.ModuleList([ScaledConvolution(dim, out, stride=stride), ScaledConvolution(out, out)])
        changed = dim != out or stride > 1
        self.shortcut = ScaledConvolution(dim, out, 1) if changed else None
        self.gain = nn.Parameter(torch.tensor(float(gain)))
        self.beta_after = math.sqrt((1.0 if changed else self.beta**2) + self.alpha**2)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(x) * (RELU_GAIN / self.beta)
        if self.shortcut is not None:
            x = self.shortcut(F.avg_pool2d(h, self.stride, ceil_mode=True) if self.stride > 1 else h)
        y = self.convs[1](F.relu(self.convs[0](h)) * RELU_GAIN)
        return x + self.alpha * self.gain * y
