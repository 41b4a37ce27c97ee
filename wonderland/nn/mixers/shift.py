"""Token shift: some features come from the token before, some from the one after, at the cost of a copy."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.left_context import last_context, prepend_context
from wonderland.nn.contract.mixer import Mixer
from wonderland.nn.contract.state import Layout, Slot, State


@part
class Shift(Mixer):
    r"""Groups of features moved by one token: one from the past, one from the future, one that stays.

    .. math:: y_i = [\,x_{i-1}^{(1)},\; x_i^{(2)},\; x_{i+1}^{(3)}\,]

    The causal form has two groups, the first half of the features from the token before and the rest in place. What would
    come from outside the sequence is 0. It has no parameters: the channel mixer that follows does the learning.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the last token's moved features (b, 1, dim // 2), and the count.
    Book: Alice 11.3. Paper: Yu et al., 2022 (S2-MLP).

    >>> Shift(dim=2)(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[0., 2.],
             [1., 4.]]])
    """

    def __init__(self, dim: int, *, causal: bool = True):
        super().__init__()
        groups = 2 if causal else 3
        if dim < groups:
            raise WonderlandError(f"Shift moves {groups} groups of features, so dim is at least {groups}, not {dim}.")
        self.dim, self.causal, self.moved = dim, causal, dim // groups
        self.receptive_field = (1, 0) if causal else (1, 1)

    def laws(self):
        from wonderland import laws

        more = (laws.strict_causality,) if self.causal else ()
        return (*super().laws(), *more, laws.shift_equivariance, laws.locality)

    def layout(self) -> Layout:
        return (Slot((1, self.moved)),)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        k = self.moved
        if not self.causal:
            before, after = F.pad(x[:, :-1, :k], (0, 0, 1, 0)), F.pad(x[:, 1:, -k:], (0, 0, 0, 1))
            return torch.cat([before, x[..., k:-k], after], -1), ()
        full = prepend_context(x[..., :k], None if state is None else state[0], 1)
        return torch.cat([full[:, :-1], x[..., k:]], -1), (last_context(full, mask, 1),)
