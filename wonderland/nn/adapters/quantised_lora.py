"""LoRA on a base of 8-bit weights: a quarter of the memory of the frozen matrices."""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.adapters.lora import LoRA

LEVELS = 127


class QuantisedLinear(nn.Module):
    r"""A frozen linear layer whose weights are 8-bit whole numbers, with a scale for each group of inputs.

    .. math:: W_{oi} \approx s_{o g(i)}\, c_{oi}, \qquad c_{oi} \in \{-127, \dots, 127\}
    """

    codes: Tensor
    scales: Tensor
    bias: Tensor | None

    def __init__(self, layer: nn.Linear, group: int):
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        count = -(-layer.in_features // group)
        weight = F.pad(layer.weight.detach(), (0, count * group - layer.in_features)).unflatten(1, (count, group))
        scales = (weight.abs().amax(2) / LEVELS).clamp_min(torch.finfo(weight.dtype).tiny)
        codes = (weight / scales.unsqueeze(2)).round().clamp(-LEVELS, LEVELS).to(torch.int8)
        self.group = group
        self.register_buffer("codes", codes.flatten(1)[:, : layer.in_features].contiguous())
        self.register_buffer("scales", scales)
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach().clone())

    @property
    def weight(self) -> Tensor:
        """The weights that the codes stand for."""
        return dequantised(self.codes, self.scales, self.group)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, _QuantisedProduct.apply(x, self.codes, self.scales, self.bias, self.group))


def dequantised(codes: Tensor, scales: Tensor, group: int) -> Tensor:
    """Codes (out, in) and scales (out, groups) as weights."""
    wide = scales.repeat_interleave(group, 1)[:, : codes.shape[1]]
    return codes.to(scales.dtype).mul_(wide)


class _QuantisedProduct(torch.autograd.Function):
    """The product with dequantised weights, which are made again in the backward pass instead of being kept."""

    @staticmethod
    def forward(ctx, x, codes, scales, bias, group):  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(codes, scales)
        ctx.group = group
        return F.linear(x, dequantised(codes, scales, group), bias)

    @staticmethod
    def backward(ctx, dy):  # pyright: ignore[reportIncompatibleMethodOverride]
        codes, scales = ctx.saved_tensors
        return dy @ dequantised(codes, scales, ctx.group), None, None, None, None


@part
class QuantisedLoRA(LoRA):
    r"""LoRA whose frozen layer keeps its weights as 8-bit numbers, with a scale for each `group` of inputs.

    .. math:: y = \hat W x + b + \frac{\alpha}{r}\, B A\, x, \qquad |W_{oi} - \hat W_{oi}| \le \tfrac12 s_{o g(i)}

    The layer takes about a quarter of the memory of single precision. Only the change is trained, in full precision;
    `merged` is the sum of the rounded weights and the change. Shapes: x (..., i) -> (..., o).
    Paper: Dettmers et al., 2023, who round to 4 bits.

    >>> layer = QuantisedLoRA(nn.Linear(6, 4), rank=2)
    >>> torch.allclose(layer.merged()(torch.ones(6)), layer(torch.ones(6)), atol=1e-6)
    True
    """

    def __init__(
        self,
        layer: Any,
        *,
        rank: int = 8,
        alpha: float | int | None = None,
        dropout: float | int = 0.0,
        even: bool = False,
        group: int = 64,
    ):
        super().__init__(layer, rank=rank, alpha=alpha, dropout=dropout, even=even)
        self.layer = QuantisedLinear(layer, group)  # pyright: ignore[reportAttributeAccessIssue]
