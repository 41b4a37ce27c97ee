"""Dense blocks: every layer reads what all layers before it made."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.arguments import Checked, at_least_one


@part
class DenseBlock(Checked, nn.Module):
    r"""`depth` layers, each adding `growth` channels that it computes from all channels so far.

    .. math:: x \leftarrow \bigl[x,\; W_2 * \phi(\mathrm{BN}(W_1 * \phi(\mathrm{BN}(x))))\bigr]

    W_1 is a 1 x 1 convolution to `bottleneck` * growth channels; with `bottleneck=0` it is left out, as D2L has it.

    Shapes: x (b, dim, h, w) -> (b, dim + depth * growth, h, w). Book: D2L 8.7. Paper: Huang et al., 2017.

    >>> DenseBlock(8, depth=2, growth=4)(torch.zeros(1, 8, 5, 5)).shape
    torch.Size([1, 16, 5, 5])
    """

    def __init__(self, dim: int, *, depth: int, growth: int, bottleneck: int = 4):
        super().__init__()
        at_least_one("DenseBlock", dim=dim, depth=depth, growth=growth)
        self.layers = nn.ModuleList(DenseLayer(dim + index * growth, growth, bottleneck) for index in range(depth))
        self.out = dim + depth * growth

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


class DenseLayer(nn.Module):
    """One layer of a dense block: (b, dim, h, w) -> (b, growth, h, w)."""

    def __init__(self, dim: int, growth: int, bottleneck: int):
        super().__init__()
        width = bottleneck * growth
        self.norm_in = nn.BatchNorm2d(dim)
        self.conv_in = nn.Conv2d(dim, width, 1, bias=False) if width else None
        self.norm_out = nn.BatchNorm2d(width) if width else None
        self.conv_out = nn.Conv2d(width or dim, growth, 3, padding=1, bias=not width)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm_in(x))
        if self.conv_in is not None and self.norm_out is not None:
            x = F.relu(self.norm_out(self.conv_in(x)))
        return self.conv_out(x)


@part
class Transition(Checked, nn.Module):
    """Between dense blocks: a 1 x 1 convolution to `out` channels and a mean over 2 x 2 pixels.

    Shapes: x (b, dim, h, w) -> (b, out, h / 2, w / 2), rounded down; a side of 1 stays. Paper: Huang et al., 2017.

    >>> Transition(8, 4)(torch.zeros(1, 8, 6, 6)).shape
    torch.Size([1, 4, 3, 3])
    """

    def __init__(self, dim: int, out: int, *, bias: bool = False):
        super().__init__()
        at_least_one("Transition", dim=dim, out=out)
        self.norm, self.conv = nn.BatchNorm2d(dim), nn.Conv2d(dim, out, 1, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(F.relu(self.norm(x)))
        return F.avg_pool2d(x, (min(2, x.shape[2]), min(2, x.shape[3])))
