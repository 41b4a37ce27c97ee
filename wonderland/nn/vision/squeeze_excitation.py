"""Squeeze and excitation: what is in the whole image decides how loud each channel is."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.arguments import Checked, at_least_one


@part
class SqueezeExcitation(Checked, nn.Module):
    r"""Each channel multiplied by a gate in (0, 1) that a small network computes from the means of all channels.

    .. math:: y_c = x_c \cdot \sigma\bigl(W_2\, \mathrm{relu}(W_1 \bar{x} + b_1) + b_2\bigr)_c, \qquad
        \bar{x}_c = \frac{1}{hw} \sum_{ij} x_{cij}

    `hidden` is the width of the small network, dim / 16 unless given. Shapes: x (b, dim, h, w) -> (b, dim, h, w).
    Paper: Hu et al., 2018.

    >>> SqueezeExcitation(32)(torch.zeros(2, 32, 5, 5)).shape
    torch.Size([2, 32, 5, 5])
    """

    def __init__(self, dim: int, *, hidden: int | None = None):
        super().__init__()
        hidden = max(1, dim // 16) if hidden is None else hidden
        at_least_one("SqueezeExcitation", dim=dim, hidden=hidden)
        self.inward = nn.Conv2d(dim, hidden, 1)
        self.outward = nn.Conv2d(hidden, dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.outward(F.relu(self.inward(x.mean((2, 3), keepdim=True)))))
