"""(IA)^3: one trained factor for each feature."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.adapters.adapter import Adapter


@part
class IA3(Adapter):
    r"""A linear layer whose outputs, or inputs, are scaled by a trained vector that begins at 1.

    .. math:: y = \ell \odot (W x + b) \quad\text{or}\quad y = W (\ell \odot x) + b

    `side`: "output" for keys and values, "input" for the layer after a hidden one, as the paper has it.
    Shapes: x (..., i) -> (..., o). Paper: Liu et al., 2022.

    >>> IA3(nn.Linear(6, 4)).gain
    Parameter containing:
    tensor([1., 1., 1., 1.], requires_grad=True)
    """

    no_decay = frozenset({"gain"})

    def __init__(self, layer: Any, *, side: str = "output"):
        super().__init__(layer)
        if side not in ("output", "input"):
            raise WonderlandError(f"IA3 scales the 'output' or the 'input' of a layer, not {side!r}.")
        self.side = side
        size = self.out_features if side == "output" else self.in_features
        self.gain = nn.Parameter(torch.ones(size, dtype=layer.weight.dtype, device=layer.weight.device))

    @property
    def weight(self) -> Tensor:
        return self.layer.weight * (self.gain.unsqueeze(1) if self.side == "output" else self.gain)

    @property
    def bias(self) -> Tensor | None:
        own = self.layer.bias
        return own if own is None or self.side == "input" else own * self.gain

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) * self.gain if self.side == "output" else self.layer(x * self.gain)
