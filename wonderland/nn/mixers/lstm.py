"""Long short-term memory: a cell state that is updated by addition, so that gradients do not vanish."""

import torch

from wonderland.core import part
from wonderland.nn.mixers.recurrent import Recurrent


@part
class LSTM(Recurrent):
    r"""A recurrent layer with input, forget and output gates around a memory cell.

    .. math::
        (\iota, f, g, o)_i &= W x_i + V s_{i-1} + b \\
        c_i &= \sigma(f_i) \odot c_{i-1} + \sigma(\iota_i) \odot \tanh(g_i), \qquad s_i = \sigma(o_i) \odot \tanh(c_i)

    Shapes: x (b, t, dim) -> (b, t, dim); state s and c, each (b, state_size), constant in t.
    forget_bias: added to the forget gate's bias at the start, so that a new layer remembers (Jozefowicz et al., 2015).
    Book: Alice 13.2; Dive into Deep Learning 10.1. Paper: Hochreiter and Schmidhuber, 1997; Gers et al., 2000.

    >>> mixer = LSTM(dim=4)
    >>> [tuple(part.shape) for part in mixer.stream(torch.randn(2, 3, 4))[1]]
    [(2, 4), (2, 4), (2,)]
    """

    def __init__(self, dim: int, *, state_size: int | None = None, forget_bias: float = 1.0, bias: bool = True):
        super().__init__(dim, state_size=state_size, cell="lstm", bias=bias)
        if self.bias is not None:
            with torch.no_grad():
                self.bias[self.state_size : 2 * self.state_size] += forget_bias
