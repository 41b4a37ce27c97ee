"""Mamba: a state space whose step sizes, input and output maps depend on the token, between a convolution and a gate."""

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.left_context import next_context
from wonderland.nn.contract.load import load_published
from wonderland.nn.contract.mixer import Mixer, lengths
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.ops.selective_scan import RULES, selective_scan
from wonderland.ops.short_convolution import short_convolution


@part
class Mamba(Mixer):
    r"""A selective state space: what is remembered depends on what is read.

    .. math::
        [u, z] = W_\text{in} x, \qquad u \leftarrow \mathrm{silu}(\mathrm{conv}_w(u)), \qquad
        [\delta, B, C] = W_x u, \qquad \Delta = \mathrm{softplus}(W_\Delta \delta + b_\Delta)

    .. math::
        s_i = e^{\Delta_i A} \odot s_{i-1} + \Delta_i B_i u_i, \qquad
        y_i = W_\text{out} \big( (C_i^\top s_i + D \odot u_i) \odot \mathrm{silu}(z_i) \big)

    `expand` widens the inner channels, `width` is the length of the convolution, `rank` that of the projection which makes
    the steps (default dim / 16), `rule` how continuous time becomes steps: `euler`, as published, `hold` or `bilinear`.
    `bias` gives one to the projections in and out, `conv_bias` one to the convolution. `load_published` takes published
    weights.

    Shapes: x (b, t, dim) -> (b, t, dim); state: last inputs (b, width - 1, inner) and s (b, state_size, inner), constant in t.
    Book: Alice 13.4.3. Paper: Gu and Dao, 2023.

    >>> mixer = Mamba(dim=16, state_size=4)
    >>> mixer(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    alone = True
    no_decay = frozenset({"A_log", "conv_weight"})
    conv_bias: Tensor | None

    def __init__(
        self,
        dim: int,
        *,
        state_size: int = 16,
        expand: int = 2,
        width: int = 4,
        rank: int | None = None,
        rule: str = "euler",
        bias: bool = False,
        conv_bias: bool = True,
    ):
        super().__init__()
        rank = math.ceil(dim / 16) if rank is None else rank
        if min(dim, state_size, expand, width, rank) < 1:
            raise WonderlandError(
                f"Mamba cannot be built with dim={dim}, state_size={state_size}, expand={expand}, width={width}, "
                f"rank={rank}: each is at least 1."
            )
        if rule not in RULES:
            raise WonderlandError(f"Mamba has the rules {', '.join(RULES)}, not {rule!r}.")
        inner = expand * dim
        self.dim, self.inner, self.state_size, self.width, self.rank, self.rule = (
            dim,
            inner,
            state_size,
            width,
            rank,
            rule,
        )
        self.in_proj = nn.Linear(dim, 2 * inner, bias=bias)
        self.conv_weight = nn.Parameter(torch.empty(inner, width).uniform_(-1, 1) / math.sqrt(width))
        drawn = nn.Parameter(torch.empty(inner).uniform_(-1, 1) / math.sqrt(width)) if conv_bias else None
        self.register_parameter("conv_bias", drawn)
        self.x_proj = nn.Linear(inner, rank + 2 * state_size, bias=False)
        self.dt_proj = nn.Linear(rank, inner)
        self.A_log = nn.Parameter(torch.arange(1.0, state_size + 1).log().repeat(inner, 1))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, dim, bias=bias)
        nn.init.uniform_(self.dt_proj.weight, -(rank**-0.5), rank**-0.5)
        # Steps start between 0.001 and 0.1, uniform in their logarithm; the bias is the inverse of softplus there.
        steps = torch.exp(torch.empty(inner).uniform_(math.log(1e-3), math.log(1e-1)))
        with torch.no_grad():
            self.dt_proj.bias.copy_(steps + torch.log(-torch.expm1(-steps)))

    PUBLISHED: ClassVar = {
        "A_log": "A_log", "D": "D", "in_proj.weight": "in_proj.weight", "conv1d.weight": "conv_weight",
        "conv1d.bias": "conv_bias", "x_proj.weight": "x_proj.weight", "dt_proj.weight": "dt_proj.weight",
        "dt_proj.bias": "dt_proj.bias", "out_proj.weight": "out_proj.weight",
    }  # fmt: skip

    def load_published(self, weights: Mapping[str, Tensor]) -> None:
        """Load the weights of the published module, as `transformers` and the original code name them."""
        names = {
            published: own
            for published, own in self.PUBLISHED.items()
            if own != "conv_bias" or self.conv_bias is not None
        }
        if self.in_proj.bias is not None:
            names |= {name: name for name in ("in_proj.bias", "out_proj.bias")}
        load_published(self, names, weights)

    def laws(self):
        from wonderland import laws

        return (*super().laws(), laws.strict_causality)

    def layout(self) -> Layout:
        return Slot((self.width - 1, self.inner)), Slot((self.state_size, self.inner))

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        tail, s = (None, None) if state is None else state
        real = None if mask is None else lengths(mask)
        raw, z = self.in_proj(x).chunk(2, 2)
        u = short_convolution(raw, self.conv_weight, self.conv_bias, tail=tail, silu=True)
        delta, b, c = self.x_proj(u).split([self.rank, self.state_size, self.state_size], 2)
        delta, a = self.dt_proj(delta), -torch.exp(self.A_log)
        y, s = selective_scan(u, delta, a, b, c, skip=self.D, gate=z, state=s, lengths=real, rule=self.rule)
        return self.out_proj(y), (next_context(raw, tail, mask, self.width - 1), s)

    def kernel_multiply_adds(self, t: int) -> int:
        """Products of one step outside its projections: the convolution, the state and what is read of it."""
        return self.inner * (self.width + 4 * self.state_size)
