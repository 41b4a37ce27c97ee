"""Pre-activation residual blocks: norm and rectifier stand before each convolution, so the shortcut is a clean sum."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.arguments import Checked, at_least_one


@part
class PreActivation(Checked, nn.Module):
    r"""Convolutions beside a shortcut, each after batch norm and a rectifier; nothing is applied to the sum.

    .. math:: h = \mathrm{relu}(\mathrm{BN}(x)), \qquad y = s(x, h) + W_n * \mathrm{relu}(\mathrm{BN}(\dots W_1 * h))

    Two 3 x 3 convolutions, or with `width` a 1 x 1, a 3 x 3 and a 1 x 1 (bottleneck). The shortcut s is x, or a 1 x 1
    convolution of h where the shape changes.

    Shapes: x (b, dim, h, w) -> (b, out, h / stride, w / stride), rounded up.
    Book: Alice 9.4. Paper: He et al., 2016 (identity mappings).

    >>> import torch
    >>> PreActivation(4, 8, stride=2)(torch.zeros(2, 4, 9, 9)).shape
    torch.Size([2, 8, 5, 5])
    """

    def __init__(self, dim: int, out: int, *, stride: int = 1, width: int | None = None):
        super().__init__()
        at_least_one("PreActivation", dim=dim, out=out, stride=stride, width=width)
        shapes = (
            [(dim, out, 3, stride), (out, out, 3, 1)]
            if width is None
            else [(dim, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(given) for given, *_ in shapes)
        self.convs = nn.ModuleList(
            nn.Conv2d(given, width_out, size, stride=step, padding=size // 2, bias=False)
            for given, width_out, size, step in shapes
        )
        changed = dim != out or stride > 1
        self.shortcut = nn.Conv2d(dim, out, 1, stride=stride, bias=False) if changed else None

    def forward(self, x: Tensor) -> Tensor:
        first = y = F.relu(self.norms[0](x))
        for index, conv in enumerate(self.convs):
            y = conv(y if index == 0 else F.relu(self.norms[index](y)))
        return y + (x if self.shortcut is None else self.shortcut(first))
