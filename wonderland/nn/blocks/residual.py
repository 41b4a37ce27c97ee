"""A residual connection with a scale: at 0 the block begins as the identity, and depth costs nothing at first."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.blocks.block import build_slot, shared_laws
from wonderland.nn.contract.hooks import call_with_hooks
from wonderland.nn.contract.mixer import Mixer, hide
from wonderland.nn.contract.state import Layout, State


@part
class Residual(Mixer):
    r"""Any mixer beside a shortcut, its branch multiplied by one trained number.

    .. math:: y = x + \alpha f(x), \qquad \alpha = 0 \text{ at first}

    The vector-Jacobian product of the whole is :math:`v + \alpha\, \mathrm{vjp}_f(v)`: the gradient always has a way
    through. `scale` is where alpha begins.

    Shapes: x (b, t, dim) -> (b, t, dim); the state is the mixer's. Book: Alice 9.4. Papers: He et al., 2016; De and Smith,
    2020; Bachlechner et al., 2021.

    >>> from wonderland.nn.channel.mlp import MLP
    >>> x = torch.randn(2, 5, 8)
    >>> bool((Residual(8, MLP.spec())(x) == x).all())
    True
    """

    takes_specs = True
    no_decay = frozenset({"scale"})

    def __init__(self, dim: int, inner: Any, *, scale: float | int = 0.0):
        super().__init__()
        self.dim = dim
        self.inner: Any = build_slot(inner, dim, "inner", Mixer)
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.causal = self.inner.causal

    def laws(self):
        from wonderland import laws

        lost = (laws.scale_invariance, laws.permutation_invariance)
        return tuple(law for law in shared_laws([self.inner], self.receptive_field) if law not in lost)

    @property
    def receptive_field(self) -> tuple[int | None, int | None] | None:
        """That of the mixer."""
        return getattr(self.inner, "receptive_field", None)

    def state_layout(self) -> Layout:
        return self.inner.state_layout()

    def whole(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return hide(x, mask) + self.scale * call_with_hooks(self.inner, x, lambda h: self.inner.whole(h, mask))

    def proceed(self, x: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        y, after = call_with_hooks(self.inner, x, lambda h: self.inner.proceed(h, state, mask))
        return hide(x, mask) + self.scale * y, after
