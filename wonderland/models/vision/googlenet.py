"""GoogLeNet: a stem, nine Inception blocks, the mean over the map."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming, linear_head
from wonderland.nn.vision.inception import Inception, conv

WIDTHS = [
    [(64, [96, 128], [16, 32], 32), (128, [128, 192], [32, 96], 64)],
    [
        (192, [96, 208], [16, 48], 64),
        (160, [112, 224], [24, 64], 64),
        (128, [128, 256], [24, 64], 64),
        (112, [144, 288], [32, 64], 64),
        (256, [160, 320], [32, 128], 128),
    ],
    [(256, [160, 320], [32, 128], 128), (384, [192, 384], [48, 128], 128)],
]


@part
class GoogLeNet(ImageModel):
    """Three stages of Inception blocks behind a stem of three convolutions, then dropout and one linear layer.

    `norm` puts batch norm behind each convolution (the default, as in torchvision's weights, whose third branch has a 3 x 3
    kernel: `wide`). Without the auxiliary classifiers of the paper, which batch norm made unnecessary.

    Shapes: x (b, channels, h, w) -> (b, classes), from 15 x 15 pixels; 224 x 224 are usual.
    Book: D2L 8.4. Paper: Szegedy et al., 2015.

    >>> import torch
    >>> GoogLeNet(10)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, norm: bool = True, wide: int = 3, dropout: float | int = 0.2,
        mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        self.stem = nn.ModuleList(
            [conv(channels, 64, 7, norm, stride=2), conv(64, 64, 1, norm), conv(64, 192, 3, norm)]
        )
        stages, dim = [], 192
        for widths in WIDTHS:
            blocks = []
            for one, three, five, pool in widths:
                blocks.append(Inception(dim, one, three, five, pool, norm=norm, wide=wide))
                dim = blocks[-1].out
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.ModuleList(stages)
        self.dropout = dropout
        self.head = linear_head(dim, classes)
        kaiming(self)

    @classmethod
    @published
    def d2l(cls, **more: Any):
        """As D2L has it: no batch norm, 5 x 5 kernels, one channel, ten classes."""
        return cls(**{"norm": False, "wide": 5, "dropout": 0.0, "classes": 10, "channels": 1, **more})

    def maps(self, x: Tensor) -> Tensor:
        x = _halved(self.stem[0](self.read(x)))
        x = _halved(self.stem[2](self.stem[1](x)))
        x = _halved(self.stages[0](x))
        x = F.max_pool2d(self.stages[1](x), 2, ceil_mode=True)
        return self.stages[2](x)

    def features(self, x: Tensor) -> Tensor:
        return F.dropout(self.maps(x).mean((2, 3)), self.dropout, self.training)


def _halved(x: Tensor) -> Tensor:
    return F.max_pool2d(x, 3, 2, ceil_mode=True) if min(x.shape[2:]) > 2 else F.max_pool2d(x, 3, 2, 1)
