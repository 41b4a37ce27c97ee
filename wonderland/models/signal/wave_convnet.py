"""WaveConvNet: one-dimensional convolutions that read a wave as it is."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.signal.signal_model import SignalModel, mean_and_largest
from wonderland.nn.channel.mlp import chance


@part
class WaveConvNet(SignalModel):
    """A convolution of `width` samples every `stride`, then `depth` convolutions of three, each at half the steps and with twice the
    channels up to `most`; mean and maximum over the steps, one linear layer.

    Shapes: x (b, samples, channels) -> (b, outputs). After Dai et al., 2017.

    >>> import torch
    >>> WaveConvNet(10, 1, dim=8)(torch.zeros(2, 800, 1)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, outputs: int, channels: int = 1, *, dim: int = 32, depth: int = 5, width: int = 80, stride: int = 8,
        most: int = 128, dropout: float | int = 0.2,
    ):  # fmt: skip
        super().__init__(outputs, channels)
        self.dropout, self.strides = chance(dropout, "WaveConvNet"), (stride, *[2] * depth)
        sizes = [channels, *(min(most, dim * 2**i) for i in range(depth + 1))]
        widths = (width + (width + 1) % 2, *[3] * depth)
        self.convs = nn.ModuleList(
            nn.Conv1d(a, b, w, stride=s, padding=w // 2, bias=False)
            for a, b, w, s in zip(sizes[:-1], sizes[1:], widths, self.strides, strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(size) for size in sizes[1:])
        self.head = nn.Linear(2 * sizes[-1], outputs)

    def features(self, x: Tensor) -> Tensor:
        x, mask = self.real(x)
        h = x.transpose(1, 2)
        for conv, norm, stride in zip(self.convs, self.norms, self.strides, strict=True):
            mask = mask[:, ::stride]
            h = F.relu(norm(conv(h))) * mask[:, None]
        return F.dropout(mean_and_largest(h.transpose(1, 2), mask), self.dropout, self.training)
