"""Draws of a model's weights from their posterior, as tensors that are stored and predicted with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from wonderland.core import WonderlandError


@dataclass(frozen=True, eq=False)
class WeightDraws:
    """Draws of the weights of a model by name: tensors (draws, ...). Weights that are not among them stay as they are.

    >>> draws = WeightDraws({"weight": torch.randn(7, 1, 2)})
    >>> draws.outputs(nn.Linear(2, 1), torch.zeros(5, 2)).shape
    torch.Size([7, 5, 1])
    """

    tensors: Mapping[str, Tensor]

    @property
    def count(self) -> int:
        """The number of draws."""
        return len(next(iter(self.tensors.values())))

    def outputs(self, model: nn.Module, x: Any) -> Tensor:
        """The outputs with each draw, in evaluation mode: (draws * m, n, c) for a model of m members."""
        model.eval()
        drawn = []
        with torch.no_grad():
            for place in range(self.count):
                out = functional_call(model, {name: values[place] for name, values in self.tensors.items()}, (x,))
                drawn.append(out if out.dim() == 3 else out[None])
        return torch.cat(drawn)

    def check(self, model: nn.Module) -> None:
        """Refuse draws that are not those of this model."""
        known = model.state_dict()
        counts = {len(values) for values in self.tensors.values() if values.dim()}
        fits = self.tensors and len(counts) == 1 and counts != {0}
        for name, values in self.tensors.items():
            expected = known.get(name)
            fits = fits and expected is not None and tuple(values.shape[1:]) == tuple(expected.shape)
            fits = fits and values.dtype == known[name].dtype and bool(torch.isfinite(values).all())
        if not fits:
            raise WonderlandError("posterior.safetensors does not hold draws of the weights of this model.")
