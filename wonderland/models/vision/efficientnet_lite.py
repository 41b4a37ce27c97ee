"""EfficientNet-Lite: inverted residual blocks whose depth, width and resolution were scaled together, without gates."""

from typing import Any

import torch.nn.functional as F
from jaxtyping import Float, Num
from torch import Tensor, nn

from wonderland.core import part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, linear_head

# Of each stage: blocks, side of the kernel, stride, expansion, width.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


@part
class EfficientNetLite(ImageModel):
    """A stride-2 stem, seven stages of inverted residuals (expand, depthwise, project; ReLU6), 1,280 features, a linear layer.

    Maps are padded as TensorFlow does: as much as the stride needs, one more at the end. Shapes: x (b, channels, h, w) ->
    (b, classes). Papers: Tan and Le, 2019; the published pixels of size 224 are (x / 255 - 0.5) / 0.5.

    >>> import torch
    >>> EfficientNetLite(classes=5).eval()(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 5])
    """

    def __init__(
        self, classes: int = 1000, *, channels: int = 3, dropout: float | int = 0.2, mean: Numbers = None, std: Numbers = None
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        self.stem = _Layer(channels, 32, 3, stride=2)
        blocks, dim = [], 32
        for repeats, kernel, stride, expansion, out in STAGES:
            for index in range(repeats):
                blocks.append(_Inverted(dim, out, kernel, stride if index == 0 else 1, expansion))
                dim = out
        self.blocks = nn.ModuleList(blocks)
        self.last = _Layer(dim, 1280, 1)
        self.dropout = nn.Dropout(dropout)
        self.head = linear_head(1280, classes)

    @classmethod
    @published
    def lite0(cls, classes: int = 1000, **arguments: Any) -> "EfficientNetLite":
        """4,652,008 parameters."""
        return cls(classes, **arguments)

    def maps(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b d rows columns"]:
        x = self.stem(self.read(x))
        for block in self.blocks:
            x = block(x)
        return self.last(x)

    def features(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """The mean over the last map, with dropout in training."""
        return self.dropout(self.maps(x).mean((2, 3)))


class _Layer(nn.Module):
    """Convolution with padding as the stride needs, batch norm, and ReLU6 unless it is the last of a block."""

    def __init__(self, dim: int, out: int, kernel: int, *, stride: int = 1, groups: int = 1, active: bool = True):
        super().__init__()
        self.conv = nn.Conv2d(dim, out, kernel, stride=stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(out, eps=1e-3, momentum=0.01)
        self.kernel, self.stride, self.active = kernel, stride, active
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        height, width = (max(self.kernel - (side - 1) % self.stride - 1, 0) for side in x.shape[2:])
        if height or width:
            x = F.pad(x, [width // 2, width - width // 2, height // 2, height - height // 2])
        x = self.norm(self.conv(x))
        return F.relu6(x) if self.active else x


class _Inverted(nn.Module):
    """Expand by a 1 x 1 convolution, one filter for each channel, project back; beside a shortcut where the shape stays."""

    def __init__(self, dim: int, out: int, kernel: int, stride: int, expansion: int):
        super().__init__()
        wide = dim * expansion
        self.expand = _Layer(dim, wide, 1) if expansion > 1 else None
        self.depthwise = _Layer(wide, wide, kernel, stride=stride, groups=wide)
        self.project = _Layer(wide, out, 1, active=False)
        self.keeps = stride == 1 and dim == out

    def forward(self, x: Tensor) -> Tensor:
        hidden = x if self.expand is None else self.expand(x)
        hidden = self.project(self.depthwise(hidden))
        return x + hidden if self.keeps else hidden
