"""The gated convolution of WaveNet: one convolution gives values, a second one their gates."""

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.mixers.windowed import Windowed, convolve


@part
class GatedConvolution(Windowed):
    r"""A causal convolution multiplied with a gate that is a convolution too, and a linear map.

    .. math:: y_i = P\,\big(\tanh(W_f * x)_i \odot \sigma(W_g * x)_i\big) + p

    Width 2 with dilations 1, 2, 4, ... in a stack is WaveNet's. With causal=False the window is centred.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the last tokens (b, (width - 1) dilation, dim), constant in t.
    Book: Alice 8.3. Paper: van den Oord et al., 2016.

    >>> GatedConvolution(dim=4, dilation=8)(torch.randn(2, 7, 4)).shape
    torch.Size([2, 7, 4])
    """

    def __init__(self, dim: int, *, width: int = 2, dilation: int = 1, causal: bool = True):
        super().__init__(dim, width=width, dilation=dilation, causal=causal)
        fresh = nn.Conv1d(dim, 2 * dim, width)
        assert fresh.bias is not None
        self.weight, self.bias = fresh.weight, fresh.bias
        self.project = nn.Linear(dim, dim)

    def convolve(self, full: Tensor) -> Tensor:
        value, gate = convolve(full, self.weight, self.bias, self.dilation, 1).chunk(2, -1)
        return self.project(torch.tanh(value) * torch.sigmoid(gate))
