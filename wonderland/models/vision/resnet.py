"""ResNet: blocks that learn what to add to their input, so that a hundred layers train."""

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming, linear_head
from wonderland.nn.vision.conv_norm import ConvNorm
from wonderland.nn.vision.pre_activation import PreActivation
from wonderland.nn.vision.residual_blocks import BasicBlock, BottleneckBlock

DEEP = {50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3]}


@part
class ResNet(ImageModel):
    """A stem, four stages of residual blocks at halving resolutions, the mean over the map, one linear layer.

    `depths` counts the blocks of each stage, `dims` are their widths. With `bottleneck`, blocks have three convolutions and
    four times the width at their ends. `activation` is "post" as published, or "pre". `squeeze` is how many times narrower a
    squeeze-and-excitation network is than its block, None for none. `width` multiplies the inner widths of bottlenecks;
    `dim` is the width of the stem, the first of `dims` unless given.
    `stem` is "large" (7 x 7, stride 2, pooled: for 224 pixels) or "small" (3 x 3, for 32 pixels).

    Shapes: x (b, channels, h, w) -> (b, classes). Book: Alice 9.4; D2L 8.6. Papers: He et al., 2016; He et al., 2016
    (pre-activation); Hu et al., 2018 (squeeze and excitation); Zagoruyko and Komodakis, 2016 (width).

    >>> import torch
    >>> ResNet.resnet18(classes=10, stem="small")(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, depths: Sequence[int] = (2, 2, 2, 2),
        dims: Sequence[int] = (64, 128, 256, 512), bottleneck: bool = False, activation: str = "post",
        squeeze: int | None = None, width: int = 1, dim: int | None = None, stem: str = "large", mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        if activation not in ("pre", "post"):
            raise WonderlandError(f"ResNet's activation is 'pre' or 'post', not {activation!r}.")
        if activation == "pre" and (squeeze is not None or width != 1):
            raise WonderlandError("ResNet has squeeze and width with activation='post' only.")
        check_stages("ResNet", depths, dims)
        pre, last = activation == "pre", dims[-1] * (4 if bottleneck else 1)
        dim = dims[0] if dim is None else dim
        self.stem = Stem(channels, dim, stem, norm=not pre)

        def block(dim: int, out: int, stride: int) -> nn.Module:
            width_out = 4 * out if bottleneck else out
            if pre:
                return PreActivation(dim, width_out, stride=stride, width=out if bottleneck else None)
            gate = None if squeeze is None else max(1, width_out // squeeze)
            if bottleneck:
                return BottleneckBlock(dim, width_out, width=out * width, stride=stride, squeeze=gate)
            return BasicBlock(dim, width_out, stride=stride, squeeze=gate)

        self.stages = stages(dim, depths, dims, 4 if bottleneck else 1, block)
        self.norm = nn.BatchNorm2d(last) if pre else None
        self.head = linear_head(last, classes)
        kaiming(self)

    @classmethod
    @published
    def resnet18(cls, **more: Any):
        """18 layers, 11,689,512 parameters."""
        return cls(**{"depths": [2, 2, 2, 2], **more})

    @classmethod
    @published
    def resnet34(cls, **more: Any):
        """34 layers, 21,797,672 parameters."""
        return cls(**{"depths": [3, 4, 6, 3], **more})

    @classmethod
    @published
    def resnet50(cls, **more: Any):
        """50 layers, 25,557,032 parameters."""
        return cls(**{"depths": DEEP[50], "bottleneck": True, **more})

    @classmethod
    @published
    def resnet101(cls, **more: Any):
        """101 layers, 44,549,160 parameters."""
        return cls(**{"depths": DEEP[101], "bottleneck": True, **more})

    @classmethod
    @published
    def resnet152(cls, **more: Any):
        """152 layers, 60,192,808 parameters."""
        return cls(**{"depths": DEEP[152], "bottleneck": True, **more})

    @classmethod
    @published
    def wide_resnet50(cls, **more: Any):
        """50 layers with inner widths doubled, 68,883,240 parameters."""
        return cls(**{"depths": DEEP[50], "bottleneck": True, "width": 2, **more})

    @classmethod
    @published
    def se_resnet50(cls, **more: Any):
        """50 layers with squeeze and excitation, 28,088,024 parameters."""
        return cls(**{"depths": DEEP[50], "bottleneck": True, "squeeze": 16, **more})

    def maps(self, x: Tensor) -> Tensor:
        x = self.stages(self.stem(self.read(x)))
        return x if self.norm is None else F.relu(self.norm(x))


class Stem(nn.Module):
    """The first convolution: "large" for 224 pixels, an eighth of the work for the rest; "small" for 32."""

    def __init__(self, channels: int, dim: int, kind: str, *, norm: bool = True):
        super().__init__()
        if kind not in ("large", "small"):
            raise WonderlandError(f"A stem is 'large' or 'small', not {kind!r}.")
        side, stride = (7, 2) if kind == "large" else (3, 1)
        self.conv = (
            ConvNorm(channels, dim, side, stride=stride)
            if norm
            else nn.Conv2d(channels, dim, side, stride=stride, padding=side // 2, bias=False)
        )
        self.pool = nn.MaxPool2d(3, 2, 1) if kind == "large" else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.conv(x))


def stages(dim: int, depths: Sequence[int], dims: Sequence[int], expansion: int, block: Any) -> nn.Sequential:
    """Stages of residual blocks: the first block of each but the first halves the map."""
    blocks_of_stages = []
    for index, (depth, out) in enumerate(zip(depths, dims, strict=True)):
        blocks = []
        for place in range(depth):
            blocks.append(block(dim, out, 2 if place == 0 and index > 0 else 1))
            dim = out * expansion
        blocks_of_stages.append(nn.Sequential(*blocks))
    return nn.Sequential(*blocks_of_stages)


def check_stages(name: str, depths: Sequence[int], dims: Sequence[int]) -> None:
    """Say so when stages lack a depth or a width, or are too many to be meant."""
    if len(depths) != len(dims) or not dims or min(*depths, *dims, 1) < 1 or max(depths) > 1000 or len(dims) > 16:
        raise WonderlandError(
            f"{name} needs one depth (1 to 1000) and one width for each of at most 16 stages, not depths={depths}, dims={dims}."
        )
