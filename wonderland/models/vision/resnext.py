"""ResNeXt: bottlenecks whose middle convolution works in groups."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from wonderland.core import part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming, linear_head
from wonderland.models.vision.resnet import DEEP, Stem, check_stages, stages
from wonderland.nn.vision.residual_blocks import BottleneckBlock


@part
class ResNeXt(ImageModel):
    """ResNet with grouped bottlenecks: `groups` groups of `group_width` channels in the first stage, twice that in each next.

    Shapes: x (b, channels, h, w) -> (b, classes). Book: D2L 8.6.5. Paper: Xie et al., 2017.

    >>> import torch
    >>> ResNeXt(10, depths=[1, 1], dims=[8, 16], groups=4, group_width=2)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, depths: Sequence[int] = (3, 4, 6, 3),
        dims: Sequence[int] = (64, 128, 256, 512), groups: int = 32, group_width: int = 4, squeeze: int | None = None,
        stem: str = "large", mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        check_stages("ResNeXt", depths, dims)
        self.stem = Stem(channels, dims[0], stem)

        def block(dim: int, out: int, stride: int) -> BottleneckBlock:
            width = groups * group_width * out // dims[0]
            gate = None if squeeze is None else max(1, 4 * out // squeeze)
            return BottleneckBlock(dim, 4 * out, width=width, stride=stride, groups=groups, squeeze=gate)

        self.stages = stages(dims[0], depths, dims, 4, block)
        self.head = linear_head(4 * dims[-1], classes)
        kaiming(self)

    @classmethod
    @published
    def resnext50(cls, **more: Any):
        """50 layers, 32 groups of 4, 25,028,904 parameters."""
        return cls(**{"depths": DEEP[50], **more})

    @classmethod
    @published
    def resnext101(cls, **more: Any):
        """101 layers, 32 groups of 8, 88,791,336 parameters."""
        return cls(**{"depths": DEEP[101], "group_width": 8, **more})

    def maps(self, x: Tensor) -> Tensor:
        return self.stages(self.stem(self.read(x)))
