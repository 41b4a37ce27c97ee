"""NormFreeResNet: a residual network whose layers need no statistics of the batch."""

import math
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.vision.image_model import ImageModel, Numbers, linear_head
from wonderland.models.vision.resnet import check_stages
from wonderland.nn.vision.norm_free import RELU_GAIN, NormFreeBlock, ScaledConvolution


@part
class NormFreeResNet(ImageModel):
    """A scaled convolution, stages of `nn.NormFreeBlock` at halving resolutions, the mean over the map, one linear layer.

    `depths` counts the blocks of each stage, `dims` are their widths, `alpha` is what each block adds to the spread. `stem` is "large"
    (stride 4: for 224 pixels) or "small" (for 32). An image is predicted alike in training and in use, alone or among others. Clip
    gradients: without batch norm, large steps are not caught.

    Shapes: x (b, channels, h, w) -> (b, classes). Book: Alice 9.3. Paper: Brock et al., 2021.

    >>> import torch
    >>> NormFreeResNet(10, depths=[1, 1], dims=[8, 16], stem="small")(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, depths: Sequence[int] = (2, 2, 2, 2),
        dims: Sequence[int] = (64, 128, 256, 512), alpha: float | int = 0.2, stem: str = "large", mean: Numbers = None,
        std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        check_stages("NormFreeResNet", depths, dims)
        if stem not in ("large", "small"):
            raise WonderlandError(f"A stem is 'large' or 'small', not {stem!r}.")
        self.stem = ScaledConvolution(
            channels, dims[0], 7 if stem == "large" else 3, stride=4 if stem == "large" else 1
        )
        blocks: list[NormFreeBlock] = []
        dim, beta = dims[0], 1.0
        for index, (depth, out) in enumerate(zip(depths, dims, strict=True)):
            for place in range(depth):
                stride = 2 if place == 0 and index > 0 else 1
                blocks.append(NormFreeBlock(dim, out, stride=stride, alpha=alpha, beta=beta))
                dim, beta = out, blocks[-1].beta_after
        self.stages = nn.Sequential(*blocks)
        self.head = linear_head(dim, classes)
        if isinstance(self.head, nn.Linear):
            nn.init.normal_(self.head.weight, std=0.1 / math.sqrt(dim))
            nn.init.zeros_(self.head.bias)

    def maps(self, x: Tensor) -> Tensor:
        return F.relu(self.stages(self.stem(self.read(x)))) * RELU_GAIN
