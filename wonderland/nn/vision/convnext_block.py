"""The ConvNeXt block: a transformer block whose token mixer is a depthwise convolution."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.norms.norm import LayerNorm


@part
class ConvNeXtBlock(Checked, nn.Module):
    r"""A depthwise 7 x 7 convolution, a norm over channels, an MLP for each pixel, a trained scale, beside a shortcut.

    .. math:: y = x + \gamma \odot W_2\, \mathrm{gelu}(W_1\, \mathrm{LN}(W *_{\text{depthwise}} x))

    `layer_scale` is where gamma begins, None for none; `drop_path` is the chance that a row skips the block in training.

    Shapes: x (b, dim, h, w) -> (b, dim, h, w). Book: Alice 9.4. Paper: Liu et al., 2022.

    >>> ConvNeXtBlock(8)(torch.zeros(1, 8, 5, 5)).shape
    torch.Size([1, 8, 5, 5])
    """

    no_decay = frozenset({"scale"})

    def __init__(
        self, dim: int, *, size: int = 7, expansion: int = 4, layer_scale: float | int | None = 1e-6,
        drop_path: float | int = 0.0,
    ):  # fmt: skip
        super().__init__()
        at_least_one("ConvNeXtBlock", dim=dim, size=size, expansion=expansion)
        self.drop_path = chance(drop_path, "ConvNeXtBlock")
        self.conv = nn.Conv2d(dim, dim, size, padding=size // 2, groups=dim)
        self.norm = LayerNorm(dim, eps=1e-6)
        self.inward, self.outward = nn.Linear(dim, expansion * dim), nn.Linear(expansion * dim, dim)
        self.scale = None if layer_scale is None else nn.Parameter(torch.full((dim,), float(layer_scale)))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm.apply_to(self.conv(x).permute(0, 2, 3, 1))
        y = self.outward(F.gelu(self.inward(y)))
        y = (y if self.scale is None else y * self.scale).permute(0, 3, 1, 2)
        if self.training and self.drop_path:
            kept = torch.rand(len(y), 1, 1, 1, device=y.device) >= self.drop_path
            y = y * (kept.to(y.dtype) / (1 - self.drop_path))
        return x + y


@part
class MapNorm(Checked, nn.Module):
    """Layer norm over the channels of each pixel of a map. Shapes: x (b, dim, h, w) -> (b, dim, h, w).

    >>> MapNorm(4)(torch.zeros(1, 4, 2, 2)).shape
    torch.Size([1, 4, 2, 2])
    """

    def __init__(self, dim: int, *, eps: float | int = 1e-6):
        super().__init__()
        self.norm = LayerNorm(dim, eps=eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm.apply_to(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
