"""VGG: blocks of 3 x 3 convolutions, all alike; depth by repetition."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming, linear_head
from wonderland.nn.vision.conv_norm import ConvNorm


@part
class VGG(ImageModel):
    """Blocks of `depths` convolutions with `dims` channels, each block ended by 2 x 2 maximum pooling; three linear layers.

    `norm` puts batch norm behind each convolution. The last map is pooled to `grid` x `grid`; `hidden` is the width of the
    linear layers. Shapes: x (b, channels, h, w) -> (b, classes), from 2^blocks pixels; 224 x 224 are usual.
    Book: D2L 8.2. Paper: Simonyan and Zisserman, 2015.

    >>> VGG(10, depths=[1, 1], dims=[8, 16], hidden=32)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, depths: Sequence[int] = (2, 2, 3, 3, 3),
        dims: Sequence[int] = (64, 128, 256, 512, 512), norm: bool = False, grid: int = 7, hidden: int = 4096,
        dropout: float | int = 0.5, mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        if len(depths) != len(dims) or not dims:
            raise WonderlandError(
                f"VGG needs one depth and one width for each block, not {len(depths)} and {len(dims)}."
            )
        self.smallest = 1 << len(dims)  # each block halves the map
        blocks, given = [], channels
        for depth, dim in zip(depths, dims, strict=True):
            layers = []
            for _ in range(depth):
                layers.append(
                    ConvNorm(given, dim) if norm else nn.Sequential(nn.Conv2d(given, dim, 3, padding=1), nn.ReLU())
                )
                given = dim
            blocks.append(nn.Sequential(*layers, nn.MaxPool2d(2)))
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(grid)
        self.linears = nn.ModuleList([nn.Linear(given * grid * grid, hidden), nn.Linear(hidden, hidden)])
        self.dropout = dropout
        self.head = linear_head(hidden, classes)
        kaiming(self.blocks)

    @classmethod
    @published
    def vgg11(cls, **more: Any):
        """11 layers, 132,863,336 parameters."""
        return cls(**{"depths": [1, 1, 2, 2, 2], **more})

    @classmethod
    @published
    def vgg13(cls, **more: Any):
        """13 layers, 133,047,848 parameters."""
        return cls(**{"depths": [2, 2, 2, 2, 2], **more})

    @classmethod
    @published
    def vgg16(cls, **more: Any):
        """16 layers, 138,357,544 parameters."""
        return cls(**{"depths": [2, 2, 3, 3, 3], **more})

    @classmethod
    @published
    def vgg19(cls, **more: Any):
        """19 layers, 143,667,240 parameters."""
        return cls(**{"depths": [2, 2, 4, 4, 4], **more})

    def maps(self, x: Tensor) -> Tensor:
        return self.blocks(self.read(x))

    def features(self, x: Tensor) -> Tensor:
        x = torch.flatten(self.pool(self.maps(x)), 1)
        for linear in self.linears:
            x = F.dropout(F.relu(linear(x)), self.dropout, self.training)
        return x
