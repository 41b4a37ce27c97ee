"""Temporal convolutional networks: residual blocks of dilated causal convolutions."""

import torch.nn.functional as F
from torch import Tensor

from wonderland.core import part
from wonderland.models.series.sequence import SequenceForecaster
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.mixer import Mixer
from wonderland.nn.contract.state import Layout, State
from wonderland.nn.mixers.causal_convolution import CausalConvolution


@part
class TemporalBlock(Mixer):
    r"""Two dilated causal convolutions with a residual connection.

    .. math:: y = \mathrm{relu}\bigl(x + \mathrm{relu}(W_2 *_r \mathrm{relu}(W_1 *_r x))\bigr)

    Shapes: x (b, t, dim) -> (b, t, dim); state: the last tokens of both convolutions. Book: Alice 8.3. Paper: Bai et al., 2018 (without
    its weight norm).

    >>> import torch
    >>> block = TemporalBlock(dim=4, width=3, dilation=2)
    >>> x = torch.randn(1, 6, 4)
    >>> first, state = block.stream(x[:, :4])
    >>> torch.allclose(torch.cat([first, block.stream(x[:, 4:], state)[0]], 1), block(x), atol=1e-6)
    True
    """

    causal = True

    def __init__(self, dim: int, *, width: int = 3, dilation: int = 1, dropout: float | int = 0.0):
        super().__init__()
        self.dim, self.dropout = dim, chance(dropout, "TemporalBlock")
        self.first = CausalConvolution(dim, width=width, dilation=dilation)
        self.second = CausalConvolution(dim, width=width, dilation=dilation)

    def layout(self) -> Layout:
        return (self.first.layout(), self.second.layout())

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        before = (None, None) if state is None else state
        h, first = self.first.mix(x, before[0], seen, mask)
        h = F.dropout(F.relu(h), self.dropout, self.training)
        h, second = self.second.mix(h, before[1], seen, mask)
        h = F.dropout(F.relu(h), self.dropout, self.training)
        return F.relu(x + h), (first, second)


@part
class TCN(SequenceForecaster):
    """A stack of temporal blocks whose dilations double, read at its last step.

    Shapes: x (b, context, c) -> (b, horizon, c, outputs). The receptive field is 1 + 2 (width - 1)(2^depth - 1) steps.
    Paper: Bai et al., 2018.

    >>> import torch
    >>> TCN(context=16, horizon=3, dim=8, depth=2)(torch.zeros(2, 16, 1)).shape
    torch.Size([2, 3, 1, 1])
    """

    def __init__(self, context: int, horizon: int, channels: int = 1, known: int = 0, outputs: int = 1, *,
                 dim: int = 32, depth: int = 5, width: int = 3, dropout: float | int = 0.0):  # fmt: skip
        blocks = [TemporalBlock.spec(width=width, dilation=2 ** (i % 20), dropout=dropout) for i in range(depth)]
        super().__init__(context, horizon, channels, known, outputs, dim=dim, depth=depth, mixer=blocks, alone=True)


def receptive_field(width: int, depth: int) -> int:
    """How many steps an output of a TCN reads.

    >>> receptive_field(3, 5)
    125
    """
    return 1 + 2 * (width - 1) * (2**depth - 1)
