"""A feature pyramid: a residual trunk, and a top-down path that adds the coarse maps to the finer ones."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.models.vision.image_model import kaiming
from wonderland.nn.vision.conv_norm import ConvNorm
from wonderland.nn.vision.residual_blocks import BasicBlock


class Pyramid(nn.Module):
    """Maps of `out` channels at strides `finest`, 2 `finest`, ..., `levels` of them; the trunk goes one level deeper, for context.

    The first convolution has dim / 2 channels and the widths double with each halving, up to 4 dim.

    Shapes: x (b, channels, h, w), sides that `stride` divides -> a list of (b, out, h / stride, w / stride), finest first.
    Paper: Lin et al., 2017 (feature pyramid networks).
    """

    def __init__(self, channels: int, *, finest: int, levels: int, dim: int, out: int):
        super().__init__()
        if finest not in (4, 8, 16, 32) or not 1 <= levels <= 5 or dim < 2:
            raise WonderlandError(
                f"A pyramid begins at stride 4, 8, 16 or 32 and has 1 to 5 levels, not finest={finest}, levels={levels}, dim={dim}."
            )
        before = finest.bit_length() - 2
        widths = [min(dim << level, 4 * dim) for level in range(before + levels)]
        self.strides = [finest << level for level in range(levels)]
        self.stride = 2 * self.strides[-1]
        self.stem = ConvNorm(channels, dim // 2, 3, stride=2)
        given = [dim // 2, *widths[:-1]]
        self.stages = nn.ModuleList(BasicBlock(a, b, stride=2) for a, b in zip(given, widths, strict=True))
        self.across = nn.ModuleList(nn.Conv2d(width, out, 1) for width in widths[before - 1 :])
        self.smooth = nn.ModuleList(ConvNorm(out, out) for _ in range(levels))
        self.first = before - 1
        kaiming(self)

    def forward(self, x: Tensor) -> list[Tensor]:
        x = self.stem(x)
        maps = []
        for place, stage in enumerate(self.stages):
            x = stage(x)
            if place >= self.first:
                maps.append(self.across[place - self.first](x))
        for place in range(len(maps) - 2, -1, -1):
            maps[place] = maps[place] + F.interpolate(maps[place + 1], size=maps[place].shape[2:], mode="nearest")
        return [smooth(features) for smooth, features in zip(self.smooth, maps, strict=False)]


def padded(x: Tensor, stride: int) -> Tensor:
    """Images with zeros at the right and lower border, so that a stride divides their sides."""
    return F.pad(x, (0, -x.shape[3] % stride, 0, -x.shape[2] % stride))
