"""Bias tuning (BitFit): only the bias is trained."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.adapters.adapter import Adapter


@part
class BiasTuning(Adapter):
    r"""A linear layer with a trained vector added, which begins at 0: BitFit, also where a layer has no bias yet.

    .. math:: y = W x + b + d

    Shapes: x (..., i) -> (..., o). Paper: Ben Zaken et al., 2022.

    >>> BiasTuning(nn.Linear(6, 4)).merged().bias.shape
    torch.Size([4])
    """

    no_decay = frozenset({"shift"})

    def __init__(self, layer: Any):
        super().__init__(layer)
        weight = layer.weight
        self.shift = nn.Parameter(torch.zeros(self.out_features, dtype=weight.dtype, device=weight.device))

    @property
    def bias(self) -> Tensor:
        return self.shift if self.layer.bias is None else self.layer.bias + self.shift

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + self.shift
