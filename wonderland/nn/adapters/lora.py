"""LoRA: the change of a weight matrix is trained as a product of two low-rank ones."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.adapters.adapter import Adapter
from wonderland.nn.channel.mlp import chance


@part
class LoRA(Adapter):
    r"""A linear layer with a change of low rank.

    .. math:: y = W x + b + \frac{\alpha}{r}\, B A\, x, \qquad A \in \mathbb{R}^{r \times i},\; B \in \mathbb{R}^{o \times r}

    B begins at 0. `alpha`, `rank` unless given, scales the change; `dropout` drops inputs of the change in training.
    `even=True` scales by :math:`\alpha / \sqrt{r}` (Kalajdzievski, 2023). Shapes: x (..., i) -> (..., o).
    Paper: Hu et al., 2021.

    >>> layer = LoRA(nn.Linear(6, 4), rank=2)
    >>> torch.allclose(layer.merged()(torch.ones(6)), layer(torch.ones(6)))
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
    ):
        super().__init__(layer)
        if not isinstance(rank, int) or rank < 1:
            raise WonderlandError(f"LoRA has a rank of at least 1, not {rank!r}.")
        alpha = rank if alpha is None else alpha
        self.rank, self.scale = rank, alpha / (math.sqrt(rank) if even else rank)
        self.dropout = chance(dropout, "LoRA")
        like = {"dtype": layer.weight.dtype, "device": layer.weight.device}
        self.down = nn.Parameter(torch.empty(rank, self.in_features, **like))
        self.up = nn.Parameter(torch.zeros(self.out_features, rank, **like))
        nn.init.uniform_(self.down, -(self.in_features**-0.5), self.in_features**-0.5)

    @property
    def weight(self) -> Tensor:
        return self.layer.weight + self.scale * (self.up @ self.down)

    def forward(self, x: Tensor) -> Tensor:
        given = F.dropout(x, self.dropout) if self.training and self.dropout else x
        return self.layer(x) + F.linear(F.linear(given, self.down), self.up) * self.scale
