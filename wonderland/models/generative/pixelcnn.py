"""PixelCNN: the levels of pixels one after another, by masked convolutions."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.generative.model import GenerativeModel
from wonderland.nn.contract.arguments import Checked, at_least_one


class MaskedConvolution(nn.Conv2d):
    """A convolution that reads earlier places in the order of reading: above, and to the left; with `own`, the place itself too."""

    mask: Tensor

    def __init__(self, inputs: int, outputs: int, kernel: int, *, own: bool):
        super().__init__(inputs, outputs, kernel, padding=kernel // 2)
        mask = torch.zeros(kernel, kernel)
        mask[: kernel // 2] = 1
        mask[kernel // 2, : kernel // 2 + own] = 1
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return F.conv2d(x, self.weight * self.mask, self.bias, padding=self.padding)


class TokenGrid(Checked, nn.Module):
    r"""The distribution of each token of a grid given those before it, line by line.

    .. math:: p(x) = \prod_i p(x_i \mid x_1, \dots, x_{i-1})

    Shapes: tokens (b, h, w), labels (b,) of codes from 1 -> logits (b, levels, h, w). `sample(n, h, w)` (n, h, w).
    """

    def __init__(self, levels: int, *, classes: int = 0, dim: int = 32, depth: int = 4, kernel: int = 5):
        super().__init__()
        at_least_one("TokenGrid", levels=levels, dim=dim, depth=depth)
        if kernel % 2 == 0 or kernel < 3:
            raise WonderlandError(f"A masked convolution has an odd kernel of at least 3, not {kernel}.")
        self.embed, self.label = nn.Embedding(levels, dim), nn.Embedding(classes + 1, dim)
        self.first = MaskedConvolution(dim, dim, kernel, own=False)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.ReLU(), nn.Conv2d(dim, dim, 1), nn.ReLU(), MaskedConvolution(dim, dim, kernel, own=True))
            for _ in range(depth)
        )
        self.last = nn.Sequential(nn.ReLU(), nn.Conv2d(dim, dim, 1), nn.ReLU(), nn.Conv2d(dim, levels, 1))
        self.reach = kernel // 2 * (depth + 1)  # lines above a place that its distribution depends on

    def forward(self, tokens: Tensor, labels: Tensor | None = None) -> Tensor:
        labels = torch.zeros(len(tokens), dtype=torch.long, device=tokens.device) if labels is None else labels
        about = self.label(labels)[:, :, None, None]
        x = self.first(self.embed(tokens).movedim(-1, 1)) + about
        for block in self.blocks:
            x = x + block(x + about)
        return self.last(x)

    @torch.no_grad()
    def sample(self, count: int, height: int, width: int, labels: Tensor | None = None) -> Tensor:
        """Tokens drawn one after another; each draw computes the lines that it depends on."""
        tokens = torch.zeros(count, height, width, dtype=torch.long, device=self.embed.weight.device)
        for i in range(height):
            first = max(0, i - self.reach)
            for j in range(width):
                logits = self(tokens[:, first : i + 1], labels)[:, :, -1, j]
                tokens[:, i, j] = torch.multinomial(logits.softmax(-1), 1)[:, 0]
        return tokens


@part
class PixelCNN(GenerativeModel):
    r"""Images as levels of grey or colour, each drawn given those above and to the left; the likelihood is exact.

    The channels of a pixel follow each other. Pixels in -1..1 are rounded to `levels` equal steps; the loss is in bits for each of them.

    Shapes: x (b, channels, h, w) -> losses (b,); `sample(n)` (n, channels, h, w). Paper: van den Oord et al., 2016.

    >>> PixelCNN(shape=[1, 4, 4], levels=4, dim=8, depth=1).sample(2).shape
    torch.Size([2, 1, 4, 4])
    """

    def __init__(
        self, shape: Sequence[int], *, classes: int = 0, levels: int = 16, dim: int = 48, depth: int = 4, kernel: int = 5,
        hide: float = 0.1,
    ):  # fmt: skip
        super().__init__(shape, classes)
        if len(self.shape) != 3 or not 2 <= levels <= 256:
            raise WonderlandError("PixelCNN draws images of 2 to 256 levels.")
        self.levels, self.hide = levels, hide if classes else 0.0
        self.grid = TokenGrid(levels, classes=classes, dim=dim, depth=depth, kernel=kernel)

    def tokens(self, x: Tensor) -> Tensor:
        """The levels of pixels, the channels of a pixel side by side: (b, channels, h, w) -> (b, h, w * channels)."""
        levels = ((x + 1) / 2 * (self.levels - 1)).round().clamp(0, self.levels - 1).long()
        return levels.movedim(1, 3).flatten(2)

    def pixels(self, tokens: Tensor) -> Tensor:
        """Back from `tokens`, in -1..1."""
        levels = tokens.unflatten(2, (self.shape[2], self.shape[0])).movedim(3, 1)
        return levels.float() / (self.levels - 1) * 2 - 1

    def losses(self, x: Tensor, labels: Tensor | None, *drawn: Tensor) -> Tensor:
        tokens = self.tokens(x)
        return F.cross_entropy(self.grid(tokens, labels), tokens, reduction="none").flatten(1).mean(1) / math.log(2)

    @torch.no_grad()
    def sample(self, count: int, labels: Tensor | None = None, *, guidance: float | None = None) -> Tensor:
        return self.pixels(self.grid.sample(count, self.shape[1], self.shape[2] * self.shape[0], labels))
