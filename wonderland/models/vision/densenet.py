"""DenseNet: every layer reads all layers before it in its block."""

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming, linear_head
from wonderland.models.vision.resnet import Stem
from wonderland.nn.vision.dense_block import DenseBlock, Transition


@part
class DenseNet(ImageModel):
    """Dense blocks of `depths` layers that add `growth` channels each, with transitions that halve channels and map between.

    `dim` is the width of the stem, 2 * growth unless given; `bottleneck` the width of inner convolutions in units of
    growth, 0 for none. Shapes: x (b, channels, h, w) -> (b, classes). Book: D2L 8.7. Paper: Huang et al., 2017.

    >>> import torch
    >>> DenseNet(10, depths=[2, 2], growth=4)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, depths: Sequence[int] = (6, 12, 24, 16), growth: int = 32,
        dim: int | None = None, bottleneck: int = 4, stem: str = "large", mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        dim = 2 * growth if dim is None else dim
        self.stem = Stem(channels, dim, stem)
        blocks: list[nn.Module] = []
        for index, depth in enumerate(depths):
            if index:
                blocks.append(Transition(dim, dim // 2))
                dim //= 2
            blocks.append(dense := DenseBlock(dim, depth=depth, growth=growth, bottleneck=bottleneck))
            dim = dense.out
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(dim)
        self.head = linear_head(dim, classes)
        kaiming(self)

    @classmethod
    @published
    def densenet121(cls, **more: Any):
        """121 layers, 7,978,856 parameters."""
        return cls(**{"depths": [6, 12, 24, 16], **more})

    @classmethod
    @published
    def densenet169(cls, **more: Any):
        """169 layers, 14,149,480 parameters."""
        return cls(**{"depths": [6, 12, 32, 32], **more})

    @classmethod
    @published
    def densenet201(cls, **more: Any):
        """201 layers, 20,013,928 parameters."""
        return cls(**{"depths": [6, 12, 48, 32], **more})

    @classmethod
    @published
    def d2l(cls, **more: Any):
        """As D2L has it: four blocks of four layers without bottlenecks, for one channel and ten classes."""
        form = {"depths": [4, 4, 4, 4], "dim": 64, "bottleneck": 0, "classes": 10, "channels": 1}
        return cls(**{**form, **more})

    def maps(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.blocks(self.stem(self.read(x)))))
