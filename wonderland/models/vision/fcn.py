"""FCN: a classifier made fully convolutional, its scores enlarged to the image by one transposed convolution."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.vision.image_model import ImageModel, Numbers
from wonderland.models.vision.resnet import ResNet


@part
class FCN(ImageModel):
    """The map of a `trunk`, a 1 x 1 convolution to classes, a transposed convolution back to the size of the image.

    `trunk` is the spec of a network of images (ResNet-18 unless given) whose map is `stride` times smaller than the image. The
    transposed convolution begins as bilinear interpolation. Shapes: x (b, channels, h, w) -> (b, classes, h, w).
    Book: D2L 14.11. Paper: Long et al., 2015.

    >>> FCN(3, trunk=ResNet.spec(depths=[1, 1], dims=[4, 8]), stride=8)(torch.zeros(1, 3, 40, 50)).shape
    torch.Size([1, 3, 40, 50])
    """

    takes_specs = True

    def __init__(
        self, classes: int = 21, channels: int = 3, *, trunk: Spec | None = None, stride: int = 32, mean: Numbers = None,
        std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        trunk = ResNet.spec() if trunk is None else trunk
        if not isinstance(trunk.part, type) or not issubclass(trunk.part, ImageModel):
            raise WonderlandError(f"FCN needs a network of images for its trunk, and {trunk.name} is none.")
        built: Any = trunk.build(channels=channels)
        if not isinstance(built.head, nn.Linear):
            raise WonderlandError(
                f"FCN needs a trunk with one linear layer for its head, and {trunk.name} has another."
            )
        dim = built.head.in_features
        built.head = nn.Identity()
        self.trunk, self.stride = built, stride
        self.score = nn.Conv2d(dim, classes, 1)
        nn.init.xavier_uniform_(self.score.weight)
        self.head = nn.ConvTranspose2d(classes, classes, 2 * stride, stride=stride, padding=stride // 2)
        with torch.no_grad():
            self.head.weight.copy_(bilinear_kernel(classes, 2 * stride).to(self.head.weight))
            self.head.bias.zero_()  # pyright: ignore[reportOptionalMemberAccess]

    def maps(self, x: Tensor) -> Tensor:
        return self.trunk.maps(self.read(x))

    def forward(self, x: Tensor) -> Tensor:
        y = self.head(self.score(self.maps(x)))
        height, width = x.shape[2:]
        if y.shape[2] < height or y.shape[3] < width:
            y = F.pad(y, (0, max(0, width - y.shape[3]), 0, max(0, height - y.shape[2])), mode="replicate")
        return y[:, :, :height, :width]


def bilinear_kernel(channels: int, size: int) -> Tensor:
    """The kernel with which a transposed convolution interpolates linearly: (channels, channels, size, size).

    >>> bilinear_kernel(1, 4)[0, 0, 0].tolist()
    [0.0625, 0.1875, 0.1875, 0.0625]
    """
    half = (size + 1) // 2
    centre = half - 1 if size % 2 else half - 0.5
    line = 1 - (torch.arange(size) - centre).abs() / half
    return torch.eye(channels)[:, :, None, None] * torch.outer(line, line)
