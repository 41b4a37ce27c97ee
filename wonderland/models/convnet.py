"""ConvNet: a small residual convolutional network for images, sized by the data."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Num
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.vision.residual_convolution import ResidualConvolution


@part
class ConvNet(Checked, nn.Module):
    """Images to logits: a convolution, residual blocks at halving resolutions, global average pooling, one linear layer.

    Pixels are uint8 or floats in 0..255; the network divides by 255 and standardises each channel with `mean` and
    `std`, so that a saved model needs no other preprocessing. `dim` is the width of the first stage and
    doubles with each of the `stages`; `depth` residual blocks are distributed over the stages. `classes` is the
    number of outputs, 1 for a regression.

    Shapes: x (b, channels, height, width) -> (b, classes). Other image sizes work too.

    >>> net = ConvNet(channels=1, classes=10, height=8, width=8, dim=8, depth=2, stages=2)
    >>> net(torch.zeros(3, 1, 8, 8, dtype=torch.uint8)).shape
    torch.Size([3, 10])
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        channels: int,
        classes: int,
        height: int,
        width: int,
        *,
        dim: int = 24,
        depth: int = 3,
        stages: int = 2,
        stem: int = 1,
        dropout: float | int = 0.0,
        mean: list[float | int] | None = None,
        std: list[float | int] | None = None,
    ):
        super().__init__()
        mean = [0.5] * channels if mean is None else list(mean)
        std = [0.25] * channels if std is None else list(std)
        _check(channels, classes, height, width, dim, depth, stages, stem, mean, std)
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).mul(255).view(channels, 1, 1))
        self.register_buffer("scale", torch.tensor(std, dtype=torch.float32).mul(255).reciprocal().view(channels, 1, 1))
        # A stride in the first convolution brings large images to an affordable size.
        size, pad = (3, 1) if stem == 1 else (2 * stem - 1, stem - 1)
        self.stem = nn.Conv2d(channels, dim, size, stride=stem, padding=pad, bias=False)
        nn.init.kaiming_normal_(self.stem.weight, mode="fan_out", nonlinearity="relu")
        blocks = []
        for stage in range(stages):
            wide = dim << stage
            for index in range((depth - stage + stages - 1) // stages):
                first = index == 0 and stage > 0
                blocks.append(ResidualConvolution(wide >> first, wide, stride=1 + first, dropout=dropout))
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(dim << (stages - 1))
        self.head = nn.Linear(dim << (stages - 1), classes)
        nn.init.zeros_(self.head.bias)

    @staticmethod
    def for_data(rows: int, channels: int, height: int, width: int, classes: int) -> dict[str, int]:
        """Arguments that suit a number of training images of a size; mean and std are to be added.

        Wider with more images, deeper with larger ones: resolutions are halved down to about 4 pixels, and images above 20
        pixels are already halved by the first convolution, for speed.

        >>> ConvNet.for_data(1300, 1, 8, 8, 10)["stages"], ConvNet.for_data(7000, 1, 28, 28, 10)["stages"]
        (2, 3)
        """
        side = min(height, width)
        stem = 1 if side <= 20 else 2 if side <= 96 else 4
        stages = max(1, min(4, round(math.log2(max(side / stem, 1) / 4)) + 1))
        dim = 16 if rows < 20_000 else 24 if rows < 100_000 else 32
        return {
            "channels": channels,
            "classes": classes,
            "height": height,
            "width": width,
            "dim": dim,
            "depth": stages * (1 if rows < 20_000 else 2),
            "stages": stages,
            "stem": stem,
        }

    def forward(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b classes"]:
        return self.head(self.features(x))

    def features(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """The input of the last layer: (b, dim of the last stage)."""
        x = self.stem((x.to(self.scale.dtype) - self.mean) * self.scale)
        # Channels last is 20 % faster on a CPU. Only activations use it: weights and their moments keep their format on disk.
        x = self.blocks(x.contiguous(memory_format=torch.channels_last))
        return F.relu(self.norm(x)).mean((2, 3))


def _check(channels, classes, height, width, dim, depth, stages, stem, mean, std) -> None:
    sizes = {"channels": channels, "classes": classes, "height": height, "width": width, "dim": dim, "depth": depth}
    for name, size in {**sizes, "stages": stages}.items():
        if not isinstance(size, int) or size < 1:
            raise WonderlandError(f"ConvNet needs {name} to be a whole number of at least 1, not {size!r}.")
    if depth < stages or stages > 8:
        raise WonderlandError(
            f"ConvNet needs at least one block for each stage and at most 8 stages, not depth={depth}, stages={stages}."
        )
    if stem not in (1, 2, 4):
        raise WonderlandError(f"ConvNet's stem, the stride of the first convolution, is 1, 2 or 4, not {stem!r}.")
    for name, values in {"mean": mean, "std": std}.items():
        if len(values) != channels:
            raise WonderlandError(f"ConvNet needs one {name} for each of the {channels} channels, not {len(values)}.")
    if not all(value > 0 for value in std):
        raise WonderlandError("ConvNet needs every std to be above 0.")
