"""Pooling over neighbouring pixels as a token mixer."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked


@part
class MapPooling(Checked, nn.Module):
    r"""The mean of a window of pixels, the pixel itself taken away. There are no parameters.

    .. math:: y_{ij} = \frac{1}{|N(i, j)|} \sum_{(k, l) \in N(i, j)} x_{kl} - x_{ij}

    Shapes: x (b, dim, h, w) -> (b, dim, h, w). Book: Alice 11.3. Paper: Yu et al., 2022.

    >>> import torch
    >>> MapPooling(1)(torch.ones(1, 1, 2, 2)).abs().max().item()
    0.0
    """

    def __init__(self, dim: int, *, window: int = 3):
        super().__init__()
        if window < 1 or window % 2 == 0:
            raise WonderlandError(f"MapPooling takes an odd window of at least 1 pixel, not window={window}.")
        self.dim, self.window = dim, window

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(x, self.window, 1, self.window // 2, count_include_pad=False) - x
