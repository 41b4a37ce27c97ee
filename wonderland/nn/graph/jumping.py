"""Jumping knowledge: the answer sees every layer, not the last alone."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked


@part
class JumpingKnowledge(Checked, nn.Module):
    r"""Outputs of all layers side by side ("cat"), their maximum ("max"), or a sum weighted by attention ("attention").

    Shapes: layers of (n, d) -> (n, layers * d), or (n, d). Paper: Xu et al., 2018.

    >>> JumpingKnowledge("cat")([torch.zeros(2, 3), torch.ones(2, 3)]).shape
    torch.Size([2, 6])
    """

    def __init__(self, how: str = "cat", dim: int | None = None):
        super().__init__()
        if how not in ("cat", "max", "attention"):
            raise WonderlandError(f"Layers are joined by cat, max or attention, not {how!r}.")
        if how == "attention" and dim is None:
            raise WonderlandError("JumpingKnowledge by attention needs dim, the width of the layers.")
        self.how = how
        self.score = nn.Linear(dim, 1) if how == "attention" and dim else None

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        if self.how == "cat":
            return torch.cat(list(layers), -1)
        stacked = torch.stack(list(layers), 1)
        if self.score is None:
            return stacked.amax(1)
        return (self.score(stacked).softmax(1) * stacked).sum(1)
