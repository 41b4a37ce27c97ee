"""MONet: products of linear maps in the place of activation functions."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.channel.mlp import width_of
from wonderland.nn.contract.left_context import last_context, prepend_context
from wonderland.nn.contract.mixer import Mixer, check_pointwise, hide
from wonderland.nn.contract.state import Layout, Slot, State


@part
class MONet(Mixer):
    r"""A polynomial of degree 2 in the features of each token.

    .. math:: y = E\,(A x \odot B_1 B_2 x + D x)

    B has rank `rank`, a quarter of `dim` by default; there are `hidden` products, twice `dim` by default; nothing has a
    bias. With `shift=True`, as in every second block of the paper, the first half of the features comes from the token
    before (zeros before the first), which makes the layer a causal token mixer.

    Shapes: x (..., dim) -> (..., dim) without shift, else (b, t, dim) -> (b, t, dim); state: () without shift, else the last token (b, 1, dim) and the count.
    Book: Alice 11.3. Paper: Cheng et al., 2024.

    >>> MONet(dim=8)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, dim: int, *, hidden: int | None = None, rank: int | None = None, shift: bool = False):
        super().__init__()
        width = width_of(hidden, 2 * dim, "MONet")
        rank = max(1, dim // 4) if rank is None else rank
        if rank < 1:
            raise WonderlandError(f"MONet needs a rank of at least 1, not {rank}.")
        self.dim, self.shift, self.width = dim, shift, width
        self.receptive_field = (1, 0) if shift else (0, 0)
        self.inward = nn.Linear(dim, 2 * width + rank, bias=False)
        self.lift = nn.Linear(rank, width, bias=False)
        self.outward = nn.Linear(width, dim, bias=False)

    def laws(self):
        from wonderland import laws

        alike = () if self.shift else (laws.permutation_equivariance,)
        return (*super().laws(), laws.strict_causality, laws.shift_equivariance, laws.locality, *alike)

    def check(self, x: Any, mask: Any) -> None:
        if self.shift:
            super().check(x, mask)
        else:
            check_pointwise(x, self.dim, mask, "MONet", self.inward.weight)

    def layout(self) -> Layout:
        return (Slot((1, self.dim)),)

    def state_layout(self) -> Layout:
        return super().state_layout() if self.shift else ()

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        full = prepend_context(x, None if state is None else state[0], 1)
        half = self.dim // 2
        moved = torch.cat([full[:, :-1, :half], x[..., half:]], -1)
        return self.polynomial(moved), (last_context(full, mask, 1),)

    def proceed(self, x: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        if self.shift:
            return super().proceed(x, state, mask)
        return hide(self.polynomial(hide(x, mask)), mask), ()

    def polynomial(self, x: Tensor) -> Tensor:
        """The equation, for each token."""
        a, d, low = self.inward(x).split([self.width, self.width, self.lift.in_features], -1)
        return self.outward(torch.addcmul(d, a, self.lift(low)))
