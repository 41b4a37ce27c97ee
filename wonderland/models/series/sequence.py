"""SequenceForecaster: any causal mixer reads the context, and a linear head forecasts from its last step."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, part
from wonderland.models.series.forecaster import Forecaster, check_width
from wonderland.models.series.linear import with_level
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.contract.state import State
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.positions import Rotary


@part
class SequenceForecaster(Forecaster):
    r"""A stack of any mixers over past values and covariates; its last step gives the whole horizon.

    .. math:: h = \mathrm{stack}(W [x - x_L; k]), \qquad \hat y = x_L + V h_L + U [k_{L+1}; \dots; k_{L+H}]

    `mixer` is a spec of `wonderland.nn`, or a list that is repeated over the layers: attention is a decoder-only transformer, Mamba a
    state-space model, `GatedConvolution` with dilations 1, 2, 4, ... WaveNet, conditioned on covariates. With `alone` the mixers are
    whole blocks. `stream(steps, state)` reads a context piece by piece.

    Shapes: x (b, context, c), known (b, context + horizon, k) -> (b, horizon, c, outputs). Book: Alice 8.4; D2L 9.1, 11.9.
    Paper: van den Oord et al., 2016 (WaveNet).

    >>> from wonderland.nn import GRU
    >>> SequenceForecaster(context=8, horizon=3, dim=8, depth=1, mixer=GRU.spec())(torch.zeros(2, 8, 1)).shape
    torch.Size([2, 3, 1, 1])
    """

    takes_specs = True

    def __init__(self, context: int, horizon: int, channels: int = 1, known: int = 0, outputs: int = 1, *,
                 dim: int = 32, depth: int = 2, mixer: Any = None, dropout: float | int = 0.0, alone: bool = False):  # fmt: skip
        super().__init__(context, horizon, channels, known, outputs)
        check_width(type(self).__name__, dim=dim, depth=depth)
        self.read = nn.Linear(channels + known, dim)
        self.stack = stack_of(dim, depth, mixer, dropout, alone)
        self.head = nn.Linear(dim, horizon * channels * outputs)
        self.ahead = nn.Linear(known, channels, bias=False) if known else None

    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        level, along = x[:, -1:], self.covariates(x, known)
        hidden = self.stack(self.read(torch.cat([x - level, along[:, : x.shape[1]]], -1)))
        return self.finish(hidden[:, -1], level, along)

    def finish(self, last: Tensor, level: Tensor, along: Tensor) -> Tensor:
        """Forecasts from the last step of the stack: (b, dim) -> (b, horizon, c, outputs)."""
        outputs = self.head(last).unflatten(-1, (self.horizon, self.channels, self.outputs))
        outputs = with_level(outputs, level)
        if self.ahead is None:
            return outputs
        return torch.cat([outputs[..., :1] + self.ahead(along[:, -self.horizon :])[..., None], outputs[..., 1:]], -1)

    def stream(self, steps: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The stack over further steps, values relative to a level with their covariates: (b, t, c + known) -> (b, t, dim)."""
        return self.stack.stream(self.read(steps), state)


def stack_of(dim: int, depth: int, mixer: Any, dropout: float | int, alone: bool = False) -> Stack:
    """A stack of causal mixers with MLPs; attention with rotary positions where none is named."""
    mixers = mixer if isinstance(mixer, list | tuple) else [mixer or attention(dim)]
    if alone:
        return Stack(dim, depth, list(mixers), norm=False)
    return Stack(
        dim, depth, [Block.spec(mixer=one, channel=MLP.spec(hidden=2 * dim), dropout=dropout) for one in mixers]
    )


def attention(dim: int, causal: bool = True) -> Spec:
    """Attention in as many heads of 8 features or more as fit, with rotary positions where it is causal."""
    heads = next(count for count in (4, 2, 1) if dim % count == 0 and (dim // count % 2 == 0 or not causal))
    return Attention.spec(heads=heads, causal=causal, position=Rotary.spec() if causal else None)
