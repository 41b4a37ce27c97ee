"""The residual blocks of ResNet, ResNeXt and RegNet: two convolutions, or three with a narrow or grouped middle."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract import fast_path
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.vision.conv_norm import ConvNorm, rectified_sum
from wonderland.nn.vision.squeeze_excitation import SqueezeExcitation


@part
class BasicBlock(Checked, nn.Module):
    r"""Two 3 x 3 convolutions beside a shortcut; the sum is rectified (post-activation).

    .. math:: y = \mathrm{relu}\bigl(s(x) + \mathrm{BN}(W_2 * \mathrm{relu}(\mathrm{BN}(W_1 * x)))\bigr)

    The shortcut s is the identity, or a 1 x 1 convolution with batch norm where the shape changes. `squeeze` is the width
    of a `SqueezeExcitation` at the end of the branch, None for none.

    Shapes: x (b, dim, h, w) -> (b, out, h / stride, w / stride), rounded up.
    Book: Alice 9.4; D2L 8.6. Paper: He et al., 2016.

    >>> import torch
    >>> BasicBlock(4, 8, stride=2)(torch.zeros(2, 4, 9, 9)).shape
    torch.Size([2, 8, 5, 5])
    """

    def __init__(self, dim: int, out: int, *, stride: int = 1, squeeze: int | None = None):
        super().__init__()
        self.convs = nn.Sequential(ConvNorm(dim, out, 3, stride=stride), ConvNorm(out, out, 3, activation=None))
        self.squeeze = None if squeeze is None else SqueezeExcitation(out, hidden=squeeze)
        self.shortcut = shortcut(dim, out, stride)

    def forward(self, x: Tensor) -> Tensor:
        if (fused := fast_path.images(self, x)) is not None:
            return fused
        y = self.convs(x)
        aside = x if self.shortcut is None else self.shortcut(x)
        if self.squeeze is None:
            return rectified_sum(y, aside, self.convs[-1], self.convs)
        return F.relu(self.squeeze(y) + aside)


@part
class BottleneckBlock(Checked, nn.Module):
    r"""A 1 x 1 convolution to `width` channels, a 3 x 3 in `groups` groups, a 1 x 1 to `out` channels, beside a shortcut.

    .. math:: y = \mathrm{relu}\bigl(s(x) + \mathrm{BN}(W_3 * \mathrm{relu}(\mathrm{BN}(W_2 *
        \mathrm{relu}(\mathrm{BN}(W_1 * x)))))\bigr)

    With `groups` it is the block of ResNeXt; with `width=out` that of RegNet. A stride is taken by the 3 x 3 convolution, so
    that no pixel is dropped unseen. `squeeze` is the width of a `SqueezeExcitation`, None for none; it stands before the
    sum, or behind the 3 x 3 convolution with `squeeze_after=2` (RegNetY).

    Shapes: x (b, dim, h, w) -> (b, out, h / stride, w / stride), rounded up.
    Book: Alice 9.4; D2L 8.6. Papers: He et al., 2016; Xie et al., 2017; Radosavovic et al., 2020.

    >>> import torch
    >>> BottleneckBlock(8, 16, width=4, stride=2)(torch.zeros(2, 8, 9, 9)).shape
    torch.Size([2, 16, 5, 5])
    """

    def __init__(
        self,
        dim: int,
        out: int,
        *,
        width: int,
        stride: int = 1,
        groups: int = 1,
        squeeze: int | None = None,
        squeeze_after: int = 3,
    ):
        super().__init__()
        at_least_one("BottleneckBlock", dim=dim, out=out, width=width, stride=stride, groups=groups)
        if width % groups or squeeze_after not in (2, 3):
            raise WonderlandError(
                f"BottleneckBlock cannot be built with width={width}, groups={groups}, squeeze_after={squeeze_after}: groups "
                "divide the width, and squeeze_after is 2 or 3."
            )
        self.convs = nn.Sequential(
            ConvNorm(dim, width, 1),
            ConvNorm(width, width, 3, stride=stride, groups=groups),
            ConvNorm(width, out, 1, activation=None),
        )
        self.squeeze_after = squeeze_after
        squeezed = width if squeeze_after == 2 else out
        self.squeeze = None if squeeze is None else SqueezeExcitation(squeezed, hidden=squeeze)
        self.shortcut = shortcut(dim, out, stride)

    def forward(self, x: Tensor) -> Tensor:
        if (fused := fast_path.images(self, x)) is not None:
            return fused
        y = x
        for count, conv in enumerate(self.convs, 1):
            y = conv(y)
            if self.squeeze is not None and count == self.squeeze_after:
                y = self.squeeze(y)
        aside = x if self.shortcut is None else self.shortcut(x)
        if self.squeeze is None:
            return rectified_sum(y, aside, self.convs[-1], self.convs)
        return F.relu(y + aside)


def shortcut(dim: int, out: int, stride: int) -> ConvNorm | None:
    """A projection where a block changes the shape, else nothing."""
    return None if dim == out and stride == 1 else ConvNorm(dim, out, 1, stride=stride, activation=None)
