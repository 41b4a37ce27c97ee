"""The inverted residual of MobileNetV2: wide inside, narrow outside, and no rectifier on the narrow side."""

from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.vision.conv_norm import ConvNorm


@part
class InvertedResidual(Checked, nn.Module):
    r"""A 1 x 1 convolution to `expansion` times the width, a depthwise 3 x 3, a linear 1 x 1 to `out`.

    .. math:: y = [x +]\; \mathrm{BN}(W_3 * \phi(\mathrm{BN}(W_2 *_{\text{depthwise}} \phi(\mathrm{BN}(W_1 * x)))))

    with relu6 as phi; x is added where the shape stays. Without expansion the first convolution is left out.

    Shapes: x (b, dim, h, w) -> (b, out, h / stride, w / stride), rounded up. Paper: Sandler et al., 2018.

    >>> import torch
    >>> InvertedResidual(8, 8)(torch.zeros(1, 8, 5, 5)).shape
    torch.Size([1, 8, 5, 5])
    """

    def __init__(self, dim: int, out: int, *, stride: int = 1, expansion: int = 6):
        super().__init__()
        at_least_one("InvertedResidual", dim=dim, out=out, stride=stride, expansion=expansion)
        width = dim * expansion
        layers = [] if expansion == 1 else [ConvNorm(dim, width, 1, activation="relu6")]
        layers += [
            ConvNorm(width, width, 3, stride=stride, groups=width, activation="relu6"),
            ConvNorm(width, out, 1, activation=None),
        ]
        self.convs = nn.Sequential(*layers)
        self.residual = dim == out and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        return x + self.convs(x) if self.residual else self.convs(x)
