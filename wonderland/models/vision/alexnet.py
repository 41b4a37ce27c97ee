"""AlexNet: the network that made deep learning the way to recognise images."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, linear_head


@part
class AlexNet(ImageModel):
    """Five convolutions with rectifiers and overlapping maximum pooling, then three linear layers with dropout.

    `dims` are the widths of the convolutions, `grid` the side that the last map is pooled to, `hidden` the width of the
    linear layers. Shapes: x (b, channels, h, w) -> (b, classes), from 63 x 63 pixels; 224 x 224 are usual.
    Book: D2L 8.1. Papers: Krizhevsky et al., 2012; Krizhevsky, 2014 (the widths of the default).

    >>> AlexNet(classes=10, hidden=64)(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 10])
    """

    smallest = 63

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, dims: Sequence[int] = (64, 192, 384, 256, 256),
        padding: int = 2, grid: int = 6, hidden: int = 4096, dropout: float | int = 0.5, mean: Numbers = None,
        std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        a, b, c, d, e = dims
        self.convs = nn.ModuleList(
            [
                nn.Conv2d(channels, a, 11, stride=4, padding=padding),
                nn.Conv2d(a, b, 5, padding=2),
                nn.Conv2d(b, c, 3, padding=1),
                nn.Conv2d(c, d, 3, padding=1),
                nn.Conv2d(d, e, 3, padding=1),
            ]
        )
        self.pool = nn.AdaptiveAvgPool2d(grid)
        self.linears = nn.ModuleList([nn.Linear(e * grid * grid, hidden), nn.Linear(hidden, hidden)])
        self.dropout = dropout
        self.head = linear_head(hidden, classes)

    @classmethod
    @published
    def d2l(cls, **more: Any):
        """As D2L has it: the widths of 2012, for one channel and ten classes, 46,764,746 parameters."""
        form = {"dims": [96, 256, 384, 384, 256], "padding": 1, "grid": 5, "classes": 10, "channels": 1}
        return cls(**{**form, **more})

    def maps(self, x: Tensor) -> Tensor:
        x = self.read(x)
        for index, conv in enumerate(self.convs):
            x = F.relu(conv(x))
            if index in (0, 1, 4):
                x = F.max_pool2d(x, 3, 2)
        return x

    def features(self, x: Tensor) -> Tensor:
        x = torch.flatten(self.pool(self.maps(x)), 1)
        for linear in self.linears:
            x = F.relu(linear(F.dropout(x, self.dropout, self.training)))
        return x
