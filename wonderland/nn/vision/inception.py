"""The Inception block: four branches look at different scales, and their channels stand side by side."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.vision.conv_norm import ConvNorm


@part
class Inception(Checked, nn.Module):
    r"""1 x 1; 1 x 1 then 3 x 3; 1 x 1 then 5 x 5; 3 x 3 maximum then 1 x 1: concatenated over channels.

    `one`, `three`, `five` and `pool` are the widths of the branches, those of two convolutions as pairs. With `norm`, each
    convolution is a `ConvNorm`, else one with a bias and a rectifier, as published first. `wide` is the kernel of the third
    branch: 5 as published; 3 in the weights that torchvision has.

    Shapes: x (b, dim, h, w) -> (b, one + three[1] + five[1] + pool, h, w).
    Book: D2L 8.4. Paper: Szegedy et al., 2015.

    >>> Inception(8, 4, [2, 4], [2, 4], 4)(torch.zeros(1, 8, 7, 7)).shape
    torch.Size([1, 16, 7, 7])
    """

    def __init__(
        self, dim: int, one: int, three: list[int], five: list[int], pool: int, *, norm: bool = True, wide: int = 5
    ):
        super().__init__()
        if len(three) != 2 or len(five) != 2 or wide % 2 == 0:
            raise WonderlandError("Inception's three and five are pairs of widths, and wide is odd.")
        self.one = conv(dim, one, 1, norm)
        self.three = nn.Sequential(conv(dim, three[0], 1, norm), conv(three[0], three[1], 3, norm))
        self.five = nn.Sequential(conv(dim, five[0], 1, norm), conv(five[0], five[1], wide, norm))
        self.pool = conv(dim, pool, 1, norm)
        self.out = one + three[1] + five[1] + pool

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.pool(F.max_pool2d(x, 3, 1, 1))
        return torch.cat([self.one(x), self.three(x), self.five(x), pooled], 1)


def conv(dim: int, out: int, size: int, norm: bool, stride: int = 1) -> nn.Module:
    """A convolution with batch norm and a rectifier, or with a bias and a rectifier."""
    if norm:
        return ConvNorm(dim, out, size, stride=stride, eps=1e-3)
    return nn.Sequential(nn.Conv2d(dim, out, size, stride=stride, padding=size // 2), nn.ReLU())
