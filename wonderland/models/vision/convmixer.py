"""ConvMixer: patches, then depthwise and pointwise convolutions and nothing else."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, linear_head


@part
class ConvMixer(ImageModel):
    r"""Patches of `patch` pixels, `depth` layers of a residual depthwise convolution and a 1 x 1 convolution, the mean.

    .. math:: h \leftarrow h + \mathrm{BN}(\phi(W_d *_{\text{depthwise}} h)), \qquad h \leftarrow \mathrm{BN}(\phi(W_p * h))

    with gelu as phi. Shapes: x (b, channels, h, w) -> (b, classes). Book: Alice 11.3. Paper: Trockman and Kolter, 2023.

    >>> import torch
    >>> ConvMixer(10, dim=8, depth=2, patch=4)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, dim: int = 256, depth: int = 8, patch: int = 2, kernel: int = 5,
        mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        self.smallest = patch
        self.stem, self.norm = nn.Conv2d(channels, dim, patch, stride=patch), nn.BatchNorm2d(dim)
        self.spatial = nn.ModuleList(nn.Conv2d(dim, dim, kernel, padding="same", groups=dim) for _ in range(depth))
        self.pointwise = nn.ModuleList(nn.Conv2d(dim, dim, 1) for _ in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm2d(dim) for _ in range(2 * depth))
        self.head = linear_head(dim, classes)

    @classmethod
    @published
    def convmixer_1536_20(cls, **more: Any):
        """Width 1536, depth 20, 51,625,960 parameters."""
        return cls(**{"dim": 1536, "depth": 20, "patch": 7, "kernel": 9, **more})

    @classmethod
    @published
    def convmixer_768_32(cls, **more: Any):
        """Width 768, depth 32, 21,110,248 parameters."""
        return cls(**{"dim": 768, "depth": 32, "patch": 7, "kernel": 7, **more})

    def maps(self, x: Tensor) -> Tensor:
        x = self.norm(F.gelu(self.stem(self.read(x))))
        for index, (spatial, pointwise) in enumerate(zip(self.spatial, self.pointwise, strict=True)):
            x = x + self.norms[2 * index](F.gelu(spatial(x)))
            x = self.norms[2 * index + 1](F.gelu(pointwise(x)))
        return x
