"""U-Net: down to what is there, up again to where it is, with shortcuts between equal resolutions."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming
from wonderland.nn.contract.arguments import at_least_one
from wonderland.nn.vision.conv_norm import ConvNorm


@part
class UNet(ImageModel):
    """Scores for each pixel: `depth` times halved with doubled width, then doubled back with transposed convolutions.

    Each level has two 3 x 3 convolutions with batch norm; the way up reads the map of the same size from the way down. Images
    of any size: the map is padded at the right and lower border where a side is not a multiple of 2^depth, and cut back.

    Shapes: x (b, channels, h, w) -> (b, classes, h, w). Paper: Ronneberger et al., 2015.

    >>> UNet(2, dim=4, depth=2)(torch.zeros(1, 3, 21, 30)).shape
    torch.Size([1, 2, 21, 30])
    """

    def __init__(
        self, classes: int = 2, channels: int = 3, *, dim: int = 64, depth: int = 4, mean: Numbers = None,
        std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        at_least_one("UNet", dim=dim, depth=depth)
        widths = [dim << level for level in range(depth + 1)]
        given = [channels, *widths[:-1]]
        self.down = nn.ModuleList(double(a, b) for a, b in zip(given, widths, strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, stride=2) for width in widths[-2::-1])
        self.join = nn.ModuleList(double(2 * width, width) for width in widths[-2::-1])
        self.head = nn.Conv2d(dim, classes, 1)
        kaiming(self.down)
        kaiming(self.join)
        for layer in self.up:
            # Each output reads one place of the input. With torch's default the way from the bottom would begin 3.5 times weaker
            # at each level, beside shortcuts at full strength, and what only the bottom sees would be learned late.
            nn.init.normal_(layer.weight, std=(2 / layer.in_channels) ** 0.5)  # pyright: ignore
            nn.init.zeros_(layer.bias)  # pyright: ignore

    def maps(self, x: Tensor) -> Tensor:
        """Features for each pixel: (b, dim, h, w)."""
        x = self.read(x)
        height, width = x.shape[2:]
        side = 1 << len(self.up)
        x = F.pad(x, (0, -width % side, 0, -height % side))
        kept = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, join, beside in zip(self.up, self.join, kept[-2::-1], strict=True):
            x = join(torch.cat([beside, up(x)], 1))
        return x[:, :, :height, :width]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.maps(x))


def double(dim: int, out: int) -> nn.Sequential:
    """Two convolutions with batch norm and rectifiers."""
    return nn.Sequential(ConvNorm(dim, out), ConvNorm(out, out))
