"""Linear attention: without the softmax, all earlier tokens are summed into one matrix."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.contract.mixer import Mixer
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.nn.mixers.feature_maps import EluPlusOne, ReluFeatures
from wonderland.ops.linear_attention import linear_attention

SMALLEST = 1e-6


@part
class LinearAttention(Mixer):
    r"""Attention with a factorised similarity, in time linear in the sequence.

    .. math::
        h_i = \frac{\phi(q_i)^\top S_i}{\phi(q_i)^\top z_i}, \qquad
        S_i = S_{i-1} + \phi(k_i) v_i^\top, \quad z_i = z_{i-1} + \phi(k_i)

    `feature_map` is the spec of :math:`\phi`: `EluPlusOne` (default), `ReluFeatures`, `ExpFeatures` or `RandomFeatures`. A
    denominator below 1e-6 counts as 1e-6, so that a query which meets no key gives 0. With `causal=False` every position
    sees all.

    Shapes: x (b, t, dim) -> (b, t, dim); state: S with z as its last column (b, heads, features, dim / heads + 1),
    constant in t. Book: Alice 13.1. Paper: Katharopoulos et al., 2020.

    >>> import torch
    >>> mixer = LinearAttention(dim=16, heads=2)
    >>> mixer(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    takes_specs = True
    weighs_unseen = True

    def __init__(self, dim: int, *, heads: int | None = None, causal: bool = True, feature_map: Spec | None = None):
        super().__init__()
        if heads is None:
            heads = next(count for count in (4, 3, 2, 1) if dim % count == 0)
        if heads < 1 or dim % heads:
            raise WonderlandError(
                f"LinearAttention shares dim={dim} between heads={heads}: choose heads that divide dim."
            )
        self.dim, self.heads, self.causal = dim, heads, causal
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        spec = EluPlusOne.spec() if feature_map is None else feature_map
        self.feature_map = spec.build(dim=dim // heads)
        if not isinstance(getattr(self.feature_map, "features", None), int):
            raise WonderlandError(
                f"LinearAttention cannot use {spec.name} as its feature map: take nn.EluPlusOne.spec(), "
                "nn.ReluFeatures.spec(), nn.ExpFeatures.spec(), nn.RandomFeatures.spec(), or a module with `features`."
            )

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        more = [laws.strict_causality if self.causal else laws.permutation_equivariance]
        # Zeros before the sequence have no feature above 0, so they have no weight.
        if isinstance(self.feature_map, ReluFeatures):
            more.append(laws.shift_equivariance)
        return (*super().laws(), *more)

    def layout(self) -> Layout:
        return (Slot((self.heads, self.feature_map.features, self.dim // self.heads + 1)),)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = self.feature_map(q), self.feature_map(k)
        if mask is not None:
            k = k.masked_fill(~mask[:, None, :, None], 0)
        v = F.pad(v, (0, 1), value=1.0)
        if self.causal:
            y, matrix = linear_attention(q, k, v, None if state is None else state[0])
            state = (matrix,)
        else:
            y, state = q @ (k.transpose(2, 3) @ v), ()
        y = y[..., :-1] / y[..., -1:].clamp(min=SMALLEST)
        return self.out(y.transpose(1, 2).reshape(b, t, -1)), state
