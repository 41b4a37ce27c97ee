"""MobileNetV2: inverted residuals with depthwise convolutions, for little arithmetic."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming, linear_head
from wonderland.nn.vision.conv_norm import ConvNorm
from wonderland.nn.vision.inverted_residual import InvertedResidual

# expansion, channels, blocks, stride
STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


@part
class MobileNetV2(ImageModel):
    """A stem, seventeen inverted residuals, a 1 x 1 convolution to 1280 channels, the mean over the map, one linear layer.

    `width` multiplies all widths, rounded to multiples of 8; 1 has 3,504,872 parameters.
    Shapes: x (b, channels, h, w) -> (b, classes). Paper: Sandler et al., 2018.

    >>> import torch
    >>> MobileNetV2(10, width=0.25)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, width: float | int = 1.0, dropout: float | int = 0.2,
        mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        dim = _eights(32 * width)
        self.stem = ConvNorm(channels, dim, 3, stride=2, activation="relu6")
        blocks = []
        for expansion, out, depth, stride in STAGES:
            for place in range(depth):
                step = stride if place == 0 else 1
                blocks.append(InvertedResidual(dim, _eights(out * width), stride=step, expansion=expansion))
                dim = _eights(out * width)
        self.blocks = nn.Sequential(*blocks)
        last = _eights(1280 * max(1.0, width))
        self.last = ConvNorm(dim, last, 1, activation="relu6")
        self.dropout = dropout
        self.head = linear_head(last, classes)
        kaiming(self)

    def maps(self, x: Tensor) -> Tensor:
        return self.last(self.blocks(self.stem(self.read(x))))

    def features(self, x: Tensor) -> Tensor:
        return F.dropout(self.maps(x).mean((2, 3)), self.dropout, self.training)


def _eights(width: float) -> int:
    """The nearest multiple of 8, not more than a tenth narrower."""
    rounded = max(8, int(width + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * width else rounded + 8
