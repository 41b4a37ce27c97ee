"""Mamba 2: a selective state space with one decay for each head, computed as attention within chunks."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.left_context import next_context
from wonderland.nn.contract.mixer import Mixer, lengths
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.ops.rms_norm import rms_norm
from wonderland.ops.short_convolution import short_convolution
from wonderland.ops.ssd_scan import ssd_scan

WIDTH_OF_HEAD = 64


@part
class Mamba2(Mixer):
    r"""A selective state space whose heads decay as a whole, so that chunks of it are matrix products.

    .. math::
        [z, u, B, C, \delta] = W_\text{in} x, \qquad [u, B, C] \leftarrow \mathrm{silu}(\mathrm{conv}_w([u, B, C])), \qquad
        \Delta = \mathrm{clip}(\mathrm{softplus}(\delta + b_\Delta))

    .. math::
        S_i = e^{\Delta_i a} S_{i-1} + \Delta_i u_i B_i^\top, \qquad
        y_i = W_\text{out}\, \mathrm{norm}\big( (S_i C_i + D u_i) \odot \mathrm{silu}(z_i) \big)

    Each of the `heads` has a number a, a number D and a step; `expand` widens the channels that they divide among
    themselves, 64 each unless given. `groups` of heads share B and C, and the norm, an RMSNorm with `eps`, is over each group.
    `width` is the length of the convolution, `limit` the least and the largest step, None for no limits. `bias` gives one
    to the projections in and out, `conv_bias` one to the convolution; `chunk` is the number of steps in a matrix product.

    Shapes: x (b, t, dim) -> (b, t, dim); state: last inputs (b, width - 1, inner + 2 groups state_size) and S (b, heads,
    inner / heads, state_size), constant in t. Paper: Dao and Gu, 2024.

    >>> mixer = Mamba2(dim=16, state_size=8, heads=4)
    >>> mixer(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    alone = True
    weighs_unseen = True
    no_decay = frozenset({"A_log", "D", "dt_bias", "conv_weight", "norm_weight"})
    conv_bias: Tensor | None

    def __init__(
        self,
        dim: int,
        *,
        state_size: int = 64,
        expand: int = 2,
        heads: int | None = None,
        groups: int = 1,
        width: int = 4,
        bias: bool = False,
        conv_bias: bool = True,
        limit: tuple[float | None, float | None] | list[float | None] | None = None,
        eps: float | int = 1e-5,
        chunk: int = 64,
    ):
        super().__init__()
        inner = expand * dim
        if heads is None:
            heads = inner // WIDTH_OF_HEAD if inner % WIDTH_OF_HEAD == 0 else groups
        if min(state_size, expand, heads, groups, width, chunk) < 1 or inner % heads or heads % groups:
            raise WonderlandError(
                f"Mamba2 cannot be built with dim={dim}, state_size={state_size}, expand={expand}, heads={heads}, "
                f"groups={groups}, width={width}, chunk={chunk}: each is at least 1, heads divide expand * dim, and groups heads."
            )
        low, high = (None, None) if limit is None else limit
        self.limit = (0.0 if low is None else float(low), math.inf if high is None else float(high))
        if not 0 <= self.limit[0] <= self.limit[1]:
            raise WonderlandError(f"Mamba2 takes as limit the least and the largest step, not {limit!r}.")
        self.dim, self.inner, self.state_size, self.heads, self.groups = dim, inner, state_size, heads, groups
        self.width, self.eps, self.chunk = width, float(eps), chunk
        self.mixed = inner + 2 * groups * state_size
        self.in_proj = nn.Linear(dim, inner + self.mixed + heads, bias=bias)
        self.conv_weight = nn.Parameter(torch.empty(self.mixed, width).uniform_(-1, 1) / math.sqrt(width))
        drawn = nn.Parameter(torch.empty(self.mixed).uniform_(-1, 1) / math.sqrt(width)) if conv_bias else None
        self.register_parameter("conv_bias", drawn)
        self.A_log = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())
        self.D = nn.Parameter(torch.ones(heads))
        self.norm_weight = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, dim, bias=bias)
        # Steps start between 0.001 and 0.1, uniform in their logarithm; the bias is the inverse of softplus there.
        steps = torch.exp(torch.empty(heads).uniform_(math.log(1e-3), math.log(1e-1)))
        self.dt_bias = nn.Parameter(steps + torch.log(-torch.expm1(-steps)))

    def laws(self):
        from wonderland import laws

        return (*super().laws(), laws.strict_causality)

    def layout(self) -> Layout:
        sizes = (self.heads, self.inner // self.heads, self.state_size)
        return Slot((self.width - 1, self.mixed)), Slot(sizes)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        tail, s = (None, None) if state is None else state
        z, raw, delta = self.in_proj(x).split([self.inner, self.mixed, self.heads], 2)
        mixed = short_convolution(raw, self.conv_weight, self.conv_bias, tail=tail, silu=True)
        maps = self.groups * self.state_size
        u, b, c = mixed.split([self.inner, maps, maps], 2)
        delta = F.softplus(delta + self.dt_bias)
        if self.limit != (0.0, math.inf):
            delta = delta.clamp(*self.limit)
        y, s = ssd_scan(
            u.unflatten(2, (self.heads, -1)),
            delta,
            -torch.exp(self.A_log),
            b.unflatten(2, (self.groups, -1)),
            c.unflatten(2, (self.groups, -1)),
            skip=self.D,
            state=s,
            lengths=None if mask is None else lengths(mask),
            chunk=self.chunk,
        )
        return self.out_proj(self._gated(y.flatten(2), z)), (next_context(raw, tail, mask, self.width - 1), s)

    def _gated(self, y: Tensor, z: Tensor) -> Tensor:
        """The gated outputs, normed in each group."""
        y = y * F.silu(z)
        if self.groups == 1:
            return rms_norm(y, self.norm_weight, self.eps)
        parts = y.unflatten(2, (self.groups, -1))
        one = torch.ones_like(self.norm_weight[: parts.shape[3]])
        return rms_norm(parts, one, self.eps).flatten(2) * self.norm_weight

    def kernel_multiply_adds(self, t: int) -> int:
        """Products of one step outside its projections: the convolution, the state and what is read of it."""
        return self.mixed * self.width + 4 * self.inner * self.state_size
