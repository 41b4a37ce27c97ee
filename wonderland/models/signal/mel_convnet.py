"""MelConvNet: a residual network over frames and bands of a log-mel spectrogram."""

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.signal.signal_model import SignalModel, mean_and_largest
from wonderland.nn.channel.mlp import chance
from wonderland.nn.vision.conv_norm import ConvNorm
from wonderland.nn.vision.residual_blocks import shortcut


@part
class MelConvNet(SignalModel):
    """A convolution at half the frames and bands, `depth` residual blocks, each with twice the channels at half of both again; mean and
    maximum over the frames, one linear layer.

    Shapes: x (b, frames, channels) -> (b, outputs), `channels` mel bands. After Hershey et al., 2017, and small networks for spoken
    commands (Tang and Lin, 2018).

    >>> import torch
    >>> MelConvNet(10, 40, dim=8)(torch.zeros(2, 50, 40)).shape
    torch.Size([2, 10])
    """

    reads = "mel"

    def __init__(self, outputs: int, channels: int = 64, *, dim: int = 24, depth: int = 3, dropout: float | int = 0.2):
        super().__init__(outputs, channels)
        self.dropout = chance(dropout, "MelConvNet")
        self.stem = ConvNorm(1, dim, 5, stride=2)
        widths = [dim * 2**i for i in range(depth + 1)]
        self.blocks = nn.ModuleList(_Block(a, b) for a, b in pairwise(widths))
        self.head = nn.Linear(2 * widths[-1], outputs)

    def maps(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The last map (b, d, frames / 2^(depth + 1), bands / 2^(depth + 1)), zero after the end, and which of its frames are real."""
        x, mask = self.real(x)
        mask = mask[:, ::2]
        h = self.stem(x[:, None]) * mask[:, None, :, None]
        for block in self.blocks:
            h, mask = block(h, mask)
        return h, mask

    def features(self, x: Tensor) -> Tensor:
        h, mask = self.maps(x)
        pooled = mean_and_largest(h.mean(3).transpose(1, 2), mask)
        return F.dropout(pooled, self.dropout, self.training)


class _Block(nn.Module):
    """A residual block at half the frames and bands; frames after the end stay zero."""

    def __init__(self, dim: int, out: int):
        super().__init__()
        self.first, self.second = ConvNorm(dim, out, 3, stride=2), ConvNorm(out, out, 3, activation=None)
        self.shortcut = shortcut(dim, out, 2)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        mask = mask[:, ::2]
        shown = mask[:, None, :, None]
        y = self.second(self.first(x) * shown)
        return F.relu(y + (0 if self.shortcut is None else self.shortcut(x))) * shown, mask
