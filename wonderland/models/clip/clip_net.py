"""Networks of clips: convolutions over time and space at once, factored into the two, or frame by frame under a sequence mixer."""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP, chance
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.vision.conv_norm import ConvNorm

Numbers = list[float | int] | None


class ClipModel(Checked, nn.Module, ABC):
    """Clips x (b, t, channels, h, w) of pixels in 0..255 in, scores (b, outputs) out; pixels are standardised by `mean` and `std` inside."""

    head: nn.Module
    pixel_mean: Tensor
    pixel_std: Tensor

    def __init__(self, outputs: int, channels: int, mean: Numbers, std: Numbers):
        super().__init__()
        at_least_one(type(self).__name__, outputs=outputs, channels=channels)
        self.outputs, self.channels = outputs, channels
        self.register_buffer("pixel_mean", torch.tensor([0.5] * channels if mean is None else mean).view(-1, 1, 1))
        self.register_buffer("pixel_std", torch.tensor([0.25] * channels if std is None else std).view(-1, 1, 1))

    def read(self, x: Tensor) -> Tensor:
        if x.dim() != 5 or x.shape[2] != self.channels:
            raise WonderlandError(
                f"{type(self).__name__} takes clips (batch, frames, {self.channels}, height, width), not {tuple(x.shape)}."
            )
        return (x / 255 - self.pixel_mean) / self.pixel_std

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """What the last layer reads: (b, d)."""

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


@part
class ClipConvNet(ClipModel):
    r"""`depth` layers of 3 x 3 x 3 convolutions, each at half the height, width and (but for the first) frames, with twice the channels.

    .. math:: y_{tij} = \mathrm{relu}\Big(\mathrm{BN}\Big(\sum_{a, b, c} W_{abc}\, x_{t + a,\, i + b,\, j + c}\Big)\Big)

    With `factored`, each is a 1 x 3 x 3 convolution over space and then a 3 x 1 x 1 convolution over time: (2+1)-D. The mean over frames
    and positions, one linear layer. Shapes: x (b, t, channels, h, w) -> (b, outputs). Book: Alice 8. Papers: Tran et al., 2015 and 2018.

    >>> ClipConvNet(3, 1, dim=4)(torch.zeros(2, 8, 1, 16, 16)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, outputs: int, channels: int = 3, *, dim: int = 16, depth: int = 3, factored: bool = False, dropout: float | int = 0.1,
        mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(outputs, channels, mean, std)
        self.dropout = chance(dropout, "ClipConvNet")
        sizes = [channels, *(dim * 2**i for i in range(depth))]
        self.layers = nn.Sequential()
        for i in range(depth):
            stride = 1 if i == 0 else 2
            self.layers.append(
                _factored(sizes[i], sizes[i + 1], stride) if factored else _whole(sizes[i], sizes[i + 1], stride)
            )
        self.head = nn.Linear(sizes[-1], outputs)

    def features(self, x: Tensor) -> Tensor:
        h = self.layers(self.read(x).transpose(1, 2))
        return F.dropout(h.mean((2, 3, 4)), self.dropout, self.training)


def _whole(dim: int, out: int, stride: int) -> nn.Module:
    conv = nn.Conv3d(dim, out, 3, stride=(stride, 2, 2), padding=1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm3d(out), nn.ReLU())


def _factored(dim: int, out: int, stride: int) -> nn.Module:
    space = nn.Conv3d(dim, out, (1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1), bias=False)
    time = nn.Conv3d(out, out, (3, 1, 1), stride=(stride, 1, 1), padding=(1, 0, 0), bias=False)
    return nn.Sequential(space, nn.BatchNorm3d(out), nn.ReLU(), time, nn.BatchNorm3d(out), nn.ReLU())


@part
class ClipSequenceNet(ClipModel):
    """A network of images for each frame, a stack with any mixer over the frames, the mean of its outputs, one linear layer.

    `mixer` is the spec of a sequence mixer: a GRU unless given. Shapes: x (b, t, channels, h, w) -> (b, outputs). Paper: Donahue et al.,
    2015.

    >>> ClipSequenceNet(3, 1, dim=8)(torch.zeros(2, 8, 1, 16, 16)).shape
    torch.Size([2, 3])
    """

    takes_specs = True

    def __init__(
        self, outputs: int, channels: int = 3, *, dim: int = 64, depth: int = 1, mixer: Spec | None = None, dropout: float | int = 0.1,
        mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(outputs, channels, mean, std)
        self.dropout = chance(dropout, "ClipSequenceNet")
        sizes = [channels, max(4, dim // 4), max(4, dim // 2), dim]
        self.frames = nn.Sequential(*(ConvNorm(sizes[i], sizes[i + 1], 3, stride=2) for i in range(3)))
        block = Block.spec(
            mixer=GRU.spec() if mixer is None else mixer, channel=MLP.spec(expansion=2), norm=LayerNorm.spec()
        )
        self.stack = Stack(dim, depth, block, norm=LayerNorm.spec())
        self.head = nn.Linear(dim, outputs)

    def features(self, x: Tensor) -> Tensor:
        x = self.read(x)
        each = self.frames(x.flatten(0, 1)).mean((2, 3)).unflatten(0, x.shape[:2])
        return F.dropout(self.stack(each).mean(1), self.dropout, self.training)
