"""InceptionTime: convolutions of several widths side by side, in residual blocks."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.signal.signal_model import SignalModel, mean_of_real
from wonderland.nn.channel.mlp import chance
from wonderland.ops.over_time import is_exporting


@part
class InceptionTime(SignalModel):
    """`depth` modules with a shortcut around every three; the mean over the steps, one linear layer.

    A module narrows its input to `dim` channels, convolves it with kernels of about `width`, a half and a quarter of it, adds the
    input's largest neighbours through `dim` channels, and normalises all four side by side.

    Shapes: x (b, t, channels) -> (b, outputs). Paper: Ismail Fawaz et al., 2020; the mean of several networks is its ensemble.

    >>> InceptionTime(3, 2, dim=4, depth=3)(torch.zeros(2, 50, 2)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        outputs: int,
        channels: int = 1,
        *,
        dim: int = 32,
        depth: int = 6,
        width: int = 39,
        dropout: float | int = 0.0,
    ):
        super().__init__(outputs, channels)
        self.dropout = chance(dropout, "InceptionTime")
        sizes = [channels, *[4 * dim] * depth]
        self.blocks = nn.ModuleList(_Inception(size, dim, width) for size in sizes[:-1])
        self.shortcuts = nn.ModuleList(
            nn.Sequential(nn.Conv1d(sizes[i], 4 * dim, 1, bias=False), nn.BatchNorm1d(4 * dim))
            for i in range(0, depth - 2, 3)
        )
        self.head = nn.Linear(4 * dim, outputs)

    def features(self, x: Tensor) -> Tensor:
        x, mask = self.real(x)
        h, shown = x.transpose(1, 2), mask[:, None]
        around = h
        for i, block in enumerate(self.blocks):
            h = block(h, shown)
            if i % 3 == 2:
                h = F.relu(h + self.shortcuts[i // 3](around) * shown)
                around = h
        return F.dropout(mean_of_real(h.transpose(1, 2), mask), self.dropout, self.training)


class _Inception(nn.Module):
    def __init__(self, channels: int, dim: int, width: int):
        super().__init__()
        self.narrow = nn.Conv1d(channels, dim, 1, bias=False) if channels > 1 else None
        inner = dim if channels > 1 else 1
        widths = [max(3, width // 2**i) | 1 for i in range(3)]
        self.convs = nn.ModuleList(nn.Conv1d(inner, dim, w, padding=w // 2, bias=False) for w in widths)
        self.pool = nn.Conv1d(channels, dim, 1, bias=False)
        self.norm = nn.BatchNorm1d(4 * dim)

    def forward(self, x: Tensor, shown: Tensor) -> Tensor:
        h = x if self.narrow is None else self.narrow(x)
        largest = largest_of_three(torch.where(shown, x, -torch.inf))
        largest = torch.where(shown, largest, 0)  # beside the end of a signal there may be nothing but padding
        joined = torch.cat([*(conv(h) for conv in self.convs), self.pool(largest)], 1)
        return F.relu(self.norm(joined)) * shown


def largest_of_three(x: Tensor) -> Tensor:
    """The largest of each step and its neighbours: (b, c, t)."""
    if not is_exporting():
        return F.max_pool1d(x, 3, stride=1, padding=1)
    edge = torch.full_like(x[:, :, :1], -torch.inf)
    before, after = torch.cat([edge, x[:, :, :-1]], 2), torch.cat([x[:, :, 1:], edge], 2)
    return torch.maximum(torch.maximum(before, after), x)
