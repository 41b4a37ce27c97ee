"""WhitenedConvNet: a network for small images that learns in a few passes over them."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Num
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.vision.image_model import ImageModel, Numbers
from wonderland.nn.vision.patch_whitening import PatchWhitening


@part
class WhitenedConvNet(ImageModel):
    """Whitened patches, then stages of two convolutions that halve the map, the largest value of each channel, one linear layer.

    Each convolution begins as the identity on its first channels, batch norms have a bias and no scale, and the first
    convolution is fixed (`nn.PatchWhitening`, with the `directions` of the training patches). In evaluation mode the scores are
    the mean over the image and two copies shifted by `crops` pixels along the diagonal, each with its mirror image if `mirror`.
    Learns fastest with `optim.FilterMuon`.

    Shapes: x (b, channels, h, w) -> (b, classes), for sides of at least 2^(stages + 1).
    Paper: Jordan, 2024 (airbench).

    >>> net = WhitenedConvNet(classes=10, widths=[8, 16])
    >>> net(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        classes: int,
        *,
        channels: int = 3,
        widths: list[int] | None = None,
        directions: list[list[float | int]] | None = None,
        patch: int = 2,
        crops: int = 0,
        mirror: bool = False,
        mean: Numbers = None,
        std: Numbers = None,
    ):
        super().__init__(classes, channels, mean, std)
        widths = [32, 128, 128] if widths is None else widths
        if not widths or min(widths) < 1 or not 0 <= crops <= 8:
            raise WonderlandError(
                f"WhitenedConvNet cannot be built with widths={widths}, crops={crops}: it has at least one stage, widths are at "
                "least 1, and crops are 0 to 8 pixels."
            )
        self.crops, self.mirror, self.smallest = crops, mirror, 2 ** (len(widths) + 1)
        self.whitening = PatchWhitening(channels, size=patch, directions=directions)
        before = [2 * channels * patch * patch, *widths]
        self.stages = nn.ModuleList(_Stage(dim, out) for dim, out in zip(before, widths, strict=False))
        self.head = nn.Linear(widths[-1], classes) if classes else nn.Identity()

    def maps(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b d rows columns"]:
        x = self.whitening(self.read(x).contiguous(memory_format=torch.channels_last))
        x = F.gelu(x)
        for stage in self.stages:
            x = stage(x)
        return x

    def features(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """The largest value of each channel."""
        return self.maps(x).amax((2, 3))

    def forward(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b classes"]:
        if self.training or not (self.crops or self.mirror):
            return self.head(self.features(x))
        views = self.views(x)
        return torch.stack([self.head(self.features(view)) for view in views]).mean(0)

    def views(self, x: Tensor) -> list[Tensor]:
        """The image, and the copies that prediction averages over."""
        views = [x]
        if self.crops:
            far = 2 * self.crops
            height, width = x.shape[2:]
            padded = F.pad(x.float(), [self.crops] * 4, mode="replicate")
            views += [padded[:, :, at : at + height, at : at + width] for at in (0, far)]
        return views + [view.flip(-1) for view in views] if self.mirror else views


class _Stage(nn.Module):
    """Convolution, pooling, norm, GELU; convolution, norm, GELU."""

    def __init__(self, dim: int, out: int):
        super().__init__()
        self.first, self.second = _identity_start(dim, out), _identity_start(out, out)
        self.norms = nn.ModuleList([_BiasNorm(out), _BiasNorm(out)])

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.norms[0](F.max_pool2d(self.first(x), 2)))
        return F.gelu(self.norms[1](self.second(x)))


class _BiasNorm(nn.BatchNorm2d):
    """Batch norm with a bias that learns and a scale of 1: the filters before it have no scale of their own."""

    def __init__(self, dim: int):
        super().__init__(dim, momentum=0.2)
        self.weight.requires_grad_(False)


def _identity_start(dim: int, out: int) -> nn.Conv2d:
    convolution = nn.Conv2d(dim, out, 3, padding=1, bias=False)
    nn.init.dirac_(convolution.weight[: min(dim, out)].data)
    return convolution
