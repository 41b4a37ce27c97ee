"""PatchTST: a transformer over patches of each column."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.series.forecaster import Forecaster, check_width
from wonderland.models.series.sequence import attention
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP


@part
class PatchTST(Forecaster):
    r"""Overlapping patches of one column are the tokens of a transformer; a linear head reads all of them.

    .. math:: \tilde x = \frac{x - \mu}{\sigma}, \quad u_i = W \tilde x_{iS : iS + P} + p_i, \quad \hat y = \sigma\, V [\mathrm{stack}(u)] + \mu

    with mean and deviation of the window itself. The last value is repeated `stride` times behind the context. Columns share weights and
    do not read each other. Shapes: x (b, context, c) -> (b, horizon, c, outputs). Paper: Nie et al., 2023 (with LayerNorm before each part).

    >>> model = PatchTST(context=32, horizon=4, channels=2, dim=8, depth=1).eval()
    >>> x = torch.randn(2, 32, 2)
    >>> torch.allclose(model(10 * x + 3), 10 * model(x) + 3, atol=1e-3)
    True
    """

    def __init__(self, context: int, horizon: int, channels: int = 1, known: int = 0, outputs: int = 1, *,
                 patch: int = 16, stride: int = 8, dim: int = 32, depth: int = 2, dropout: float | int = 0.1):  # fmt: skip
        super().__init__(context, horizon, channels, known, outputs)
        check_width("PatchTST", patch=patch, stride=stride, dim=dim, depth=depth)
        if patch > context + stride:
            raise WonderlandError(
                f"PatchTST cuts patches of {patch} steps, and the context has {context}: give a smaller patch."
            )
        self.patch, self.stride = patch, stride
        self.count = (context + stride - patch) // stride + 1
        self.embed = nn.Linear(patch, dim)
        self.place = nn.Parameter(0.02 * torch.randn(self.count, dim))
        block = Block.spec(mixer=attention(dim, causal=False), channel=MLP.spec(hidden=2 * dim), dropout=dropout)
        self.stack = Stack(dim, depth, block)
        self.head = nn.Linear(self.count * dim, horizon * outputs)

    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        mean = x.mean(1, keepdim=True).detach()
        scale = (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt().detach()
        columns = ((x - mean) / scale).transpose(1, 2)
        longer = torch.cat([columns, columns[..., -1:].expand(-1, -1, self.stride)], -1)
        patches = longer.unfold(-1, self.patch, self.stride)
        hidden = self.stack((self.embed(patches) + self.place).flatten(0, 1))
        outputs = (
            self.head(hidden.flatten(1))
            .unflatten(0, (len(x), -1))
            .unflatten(-1, (self.horizon, self.outputs))
            .transpose(1, 2)
        )
        first = outputs[..., :1] * scale[..., None] + mean[..., None]
        return torch.cat([first, outputs[..., 1:]], -1)
