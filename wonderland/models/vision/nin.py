"""Network in network: 1 x 1 convolutions are a small MLP at each pixel, and the mean over the map replaces linear layers."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming


@part
class NiN(ImageModel):
    """Blocks of one convolution and two 1 x 1 convolutions with overlapping maximum pooling between; the last has one channel a class.

    `dims` are the widths of the first three blocks. `stem` is "large" (11 x 11, stride 4: from 67 x 67 pixels, 224 are usual) or
    "small" (5 x 5, from 15 x 15 pixels). Shapes: x (b, channels, h, w) -> (b, classes).
    Book: D2L 8.3. Paper: Lin et al., 2014.

    >>> import torch
    >>> NiN(10, 3, dims=[8, 16, 16])(torch.zeros(2, 3, 70, 70)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 10, channels: int = 1, *, dims: Sequence[int] = (96, 256, 384), dropout: float | int = 0.5,
        stem: str = "large", mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        if stem not in ("large", "small"):
            raise WonderlandError(f"A stem is 'large' or 'small', not {stem!r}.")
        a, b, c = dims
        size, stride, padding = (11, 4, 0) if stem == "large" else (5, 1, 2)
        self.smallest = 67 if stem == "large" else 15
        self.blocks = nn.ModuleList(
            [
                nin_block(channels, a, size, stride=stride, padding=padding),
                nin_block(a, b, 5, padding=2),
                nin_block(b, c, 3, padding=1),
            ]
        )
        self.dropout = dropout
        # Without the last rectifier, which can silence a class for good.
        self.head = nin_block(c, classes, 3, padding=1)[:-1]
        kaiming(self)

    def maps(self, x: Tensor) -> Tensor:
        x = self.read(x)
        for block in self.blocks:
            x = F.max_pool2d(block(x), 3, 2)
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.dropout(self.maps(x), self.dropout, self.training)).mean((2, 3))


def nin_block(dim: int, out: int, size: int, *, stride: int = 1, padding: int = 0) -> nn.Sequential:
    """A convolution and two of 1 x 1, each with a rectifier."""
    layers: list[nn.Module] = [nn.Conv2d(dim, out, size, stride=stride, padding=padding), nn.ReLU()]
    for _ in range(2):
        layers += [nn.Conv2d(out, out, 1), nn.ReLU()]
    return nn.Sequential(*layers)
