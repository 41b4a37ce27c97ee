"""A small U-Net whose input is a noisy image and a time: a velocity or a noise for each pixel."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.arguments import Checked, at_least_one

GROUP = 8  # channels that are normalised together


class TimedBlock(nn.Module):
    """Two convolutions with group norm; the embedding of time and class scales and shifts between them. It begins as its shortcut."""

    def __init__(self, inputs: int, outputs: int, about: int):
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(math.gcd(GROUP, width), width) for width in (inputs, outputs))
        self.convolutions = nn.ModuleList(nn.Conv2d(a, outputs, 3, padding=1) for a in (inputs, outputs))
        self.about = nn.Linear(about, 2 * outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()
        nn.init.zeros_(self.convolutions[1].weight)  # pyright: ignore[reportArgumentType]
        nn.init.zeros_(self.convolutions[1].bias)  # pyright: ignore[reportArgumentType]

    def forward(self, x: Tensor, about: Tensor) -> Tensor:
        h = self.convolutions[0](F.silu(self.norms[0](x)))
        scale, shift = self.about(about)[:, :, None, None].chunk(2, 1)
        h = F.silu(self.norms[1](h) * (1 + scale) + shift)
        return self.shortcut(x) + self.convolutions[1](h)


@part
class VelocityUNet(Checked, nn.Module):
    """A velocity for each pixel at a time: `depth` times halved, then back up with shortcuts between equal sizes.

    The deepest map, which is small, is mixed by attention over its pixels. Sides that are no multiple of 2^depth are padded.

    Shapes: x (b, channels, h, w), t (b,), labels (b,) of codes from 1, 0 for none -> (b, channels, h, w).
    Papers: Ronneberger et al., 2015; Ho et al., 2020.

    >>> VelocityUNet(channels=1, dim=8, depth=1)(torch.randn(2, 1, 9, 8), torch.rand(2)).shape
    torch.Size([2, 1, 9, 8])
    """

    def __init__(self, channels: int = 1, *, classes: int = 0, dim: int = 32, depth: int = 2, waves: int = 16):
        super().__init__()
        at_least_one("VelocityUNet", channels=channels, dim=dim, depth=depth, waves=waves)
        self.waves, about = waves, 4 * dim
        self.time = nn.Sequential(nn.Linear(2 * waves, about), nn.SiLU(), nn.Linear(about, about))
        self.label = nn.Embedding(classes + 1, about)
        widths = [dim, *[2 * dim] * depth]
        self.first = nn.Conv2d(channels, dim, 3, padding=1)
        self.down = nn.ModuleList(TimedBlock(a, b, about) for a, b in zip([dim, *widths[:-1]], widths, strict=True))
        self.middle = TimedBlock(widths[-1], widths[-1], about)
        self.norm = nn.GroupNorm(math.gcd(GROUP, widths[-1]), widths[-1])
        self.attention = nn.MultiheadAttention(widths[-1], math.gcd(4, widths[-1]), batch_first=True)
        self.up = nn.ModuleList(
            TimedBlock(below + here, here, about) for below, here in zip(widths[::-1], widths[-2::-1], strict=False)
        )
        self.last = nn.Sequential(
            nn.GroupNorm(math.gcd(GROUP, dim), dim), nn.SiLU(), nn.Conv2d(dim, channels, 3, padding=1)
        )

    def forward(self, x: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:
        height, width = x.shape[2:]
        side = 1 << len(self.up)
        about = F.silu(self.time(waves_of(t, self.waves)) + self.label(no_labels(x) if labels is None else labels))
        x = self.first(F.pad(x, (0, -width % side, 0, -height % side)))
        kept = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else F.avg_pool2d(x, 2), about)
            kept.append(x)
        x = self.attended(self.middle(x, about))
        for block, beside in zip(self.up, kept[-2::-1], strict=True):
            x = block(torch.cat([F.interpolate(x, scale_factor=2), beside], 1), about)
        return self.last(x)[:, :, :height, :width]

    def attended(self, x: Tensor) -> Tensor:
        """The map with attention over its pixels added."""
        rows = self.norm(x).flatten(2).transpose(1, 2)
        mixed = self.attention(rows, rows, rows, need_weights=False)[0]
        return x + mixed.transpose(1, 2).reshape(x.shape)


def waves_of(t: Tensor, count: int) -> Tensor:
    """Sines and cosines of a time from 0 to 1, of frequencies up to 64 half turns: (b,) -> (b, 2 count)."""
    angle = t[:, None] * (math.pi * 2 ** torch.linspace(0, 6, count, device=t.device))
    return torch.cat([angle.sin(), angle.cos()], -1)


def no_labels(x: Tensor) -> Tensor:
    """The code of no label for each row."""
    return torch.zeros(len(x), dtype=torch.long, device=x.device)
