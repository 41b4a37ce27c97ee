"""Bottleneck adapters: a narrow residual MLP after a layer."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.adapters.adapter import Adapter
from wonderland.nn.channel.activations import Activation
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.channel.mlp import chance


@part
class Bottleneck(Adapter):
    r"""A linear layer followed by a narrow residual network.

    .. math:: y = h + U\, \phi(D\, h + c) + d, \qquad h = W x + b

    U and d begin at 0. It is not linear, so it does not merge. Shapes: x (..., i) -> (..., o). Paper: Houlsby et al., 2019.

    >>> layer = nn.Linear(6, 4)
    >>> bool((Bottleneck(layer, width=2)(torch.ones(6)) == layer(torch.ones(6))).all())
    True
    """

    merges = False

    def __init__(
        self,
        layer: Any,
        *,
        width: int = 16,
        activation: str | Activation = "gelu",
        dropout: float | int = 0.0,
    ):
        super().__init__(layer)
        if not isinstance(width, int) or width < 1:
            raise WonderlandError(f"Bottleneck has a width of at least 1, not {width!r}.")
        self.width, self.dropout, self.activation = width, chance(dropout, "Bottleneck"), resolve(activation)
        like = {"dtype": layer.weight.dtype, "device": layer.weight.device}
        self.down = nn.Linear(self.out_features, width, **like)
        self.up = nn.Linear(width, self.out_features, **like)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x)
        hidden = self.activation(self.down(h))
        if self.training and self.dropout:
            hidden = F.dropout(hidden, self.dropout)
        return torch.add(h, self.up(hidden))
