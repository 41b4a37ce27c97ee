"""LeNet-5: the first convolutional network in daily use, reading cheques."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, linear_head
from wonderland.nn.channel.activations import activation as resolve


@part
class LeNet(ImageModel):
    """Two 5 x 5 convolutions, each with an activation and 2 x 2 pooling, then three linear layers.

    `padding` is that of the first convolution. `activation` is "sigmoid" and `pool` "mean" as published; "relu" and "max"
    are what one takes today. With `norm`, batch norm follows each layer but the last.

    Shapes: x (b, channels, height, width) -> (b, classes). Book: D2L 7.6. Paper: LeCun et al., 1998.

    >>> LeNet.d2l()(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 10, channels: int = 1, height: int = 28, width: int = 28, *, padding: int = 2,
        activation: str = "sigmoid", pool: str = "mean", norm: bool = False, mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        if pool not in ("mean", "max"):
            raise WonderlandError(f"LeNet pools by 'mean' or 'max', not {pool!r}.")
        sides = [((side + 2 * padding - 4) // 2 - 4) // 2 for side in (height, width)]
        if min(sides) < 1:
            raise WonderlandError(
                f"LeNet reads images of at least {16 - 2 * padding} x {16 - 2 * padding} pixels, not {height} x {width}: "
                "enlarge them, or choose another model."
            )
        self.activation = resolve(activation)
        self.pool = nn.AvgPool2d(2) if pool == "mean" else nn.MaxPool2d(2)
        self.convs = nn.ModuleList([nn.Conv2d(channels, 6, 5, padding=padding), nn.Conv2d(6, 16, 5)])
        self.linears = nn.ModuleList([nn.Linear(16 * sides[0] * sides[1], 120), nn.Linear(120, 84)])
        norms = [nn.BatchNorm2d(6), nn.BatchNorm2d(16), nn.BatchNorm1d(120), nn.BatchNorm1d(84)]
        self.norms = nn.ModuleList(norms if norm else [nn.Identity() for _ in norms])
        self.head = linear_head(84, classes)

    @classmethod
    @published
    def d2l(cls, **more: Any):
        """As D2L has it, 61,706 parameters: the first convolution is padded."""
        return cls(**{"padding": 2, **more})

    @classmethod
    @published
    def unpadded(cls, **more: Any):
        """Without padding, 44,426 parameters."""
        return cls(**{"padding": 0, **more})

    def maps(self, x: Tensor) -> Tensor:
        x = self.read(x)
        for conv, norm in zip(self.convs, self.norms[:2], strict=True):
            x = self.pool(self.activation(norm(conv(x))))
        return x

    def features(self, x: Tensor) -> Tensor:
        x = torch.flatten(self.maps(x), 1)
        for linear, norm in zip(self.linears, self.norms[2:], strict=True):
            x = self.activation(norm(linear(x)))
        return x
