"""ConvNeXt: a convolutional network with everything that transformers taught."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from wonderland.core import part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, linear_head
from wonderland.models.vision.resnet import check_stages
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.vision.convnext_block import ConvNeXtBlock, MapNorm


@part
class ConvNeXt(ImageModel):
    """Patches of 4 x 4 pixels, four stages of ConvNeXt blocks with a norm and a 2 x 2 convolution between, the mean, a norm.

    `patch` is the side of the first patches; `drop_path` rises evenly from 0 to its value over the blocks.
    Shapes: x (b, channels, h, w) -> (b, classes), from 8 * patch pixels. Book: Alice 9.4. Paper: Liu et al., 2022.

    >>> import torch
    >>> ConvNeXt(10, depths=[1, 1], dims=[8, 16])(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, depths: Sequence[int] = (3, 3, 9, 3),
        dims: Sequence[int] = (96, 192, 384, 768), patch: int = 4, layer_scale: float | int | None = 1e-6,
        drop_path: float | int = 0.0, eps: float | int = 1e-6, mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        check_stages("ConvNeXt", depths, dims)
        self.smallest = patch << (len(dims) - 1)
        self.stem = nn.Sequential(nn.Conv2d(channels, dims[0], patch, stride=patch), MapNorm(dims[0]))
        drops = [drop_path * index / max(1, sum(depths) - 1) for index in range(sum(depths))]
        downs, stages, dim = [], [], dims[0]
        for index, (depth, out) in enumerate(zip(depths, dims, strict=True)):
            if index:
                downs.append(nn.Sequential(MapNorm(dim), nn.Conv2d(dim, out, 2, stride=2)))
            first = sum(depths[:index])
            stages.append(
                nn.Sequential(
                    *(
                        ConvNeXtBlock(out, layer_scale=layer_scale, drop_path=drops[first + place])
                        for place in range(depth)
                    )
                )
            )
            dim = out
        self.downs, self.stages = nn.ModuleList(downs), nn.ModuleList(stages)
        self.norm = LayerNorm(dim, eps=eps)
        self.head = linear_head(dim, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    @classmethod
    @published
    def tiny(cls, **more: Any):
        """28,589,128 parameters."""
        return cls(**{"depths": [3, 3, 9, 3], "dims": [96, 192, 384, 768], **more})

    @classmethod
    @published
    def small(cls, **more: Any):
        """50,223,688 parameters."""
        return cls(**{"depths": [3, 3, 27, 3], "dims": [96, 192, 384, 768], **more})

    @classmethod
    @published
    def base(cls, **more: Any):
        """88,591,464 parameters."""
        return cls(**{"depths": [3, 3, 27, 3], "dims": [128, 256, 512, 1024], **more})

    def maps(self, x: Tensor) -> Tensor:
        x = self.stages[0](self.stem(self.read(x)))
        for down, stage in zip(self.downs, self.stages[1:], strict=True):
            x = stage(down(x))
        return x

    def features(self, x: Tensor) -> Tensor:
        return self.norm.apply_to(self.maps(x).mean((2, 3)))
