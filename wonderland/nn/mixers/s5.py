"""S5: one diagonal state space for all channels, initialised by HiPPO, discretised by a chosen rule."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.mixer import Mixer
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.nn.mixers.state_space import check_rule, discretise, eigenvalues, log_steps, powers, scan_states, wide


@part
class S5(Mixer):
    r"""A diagonal state space with many inputs and many outputs.

    .. math::
        s_i = \bar\Lambda \odot s_{i-1} + \bar w \odot (B x_i), \qquad h_i = 2\,\mathrm{Re}(C s_i) + D \odot x_i, \qquad
        y_i = W\, \mathrm{gelu}(h_i)

    with `state_size` complex states (half of the conjugate pairs), each with its own step. `start` chooses the eigenvalues
    (`legs`, `lin`, `inv`), `rule` how continuous time becomes steps (`hold`, `bilinear`, `euler`).

    Shapes: x (b, t, dim) -> (b, t, dim); state (b, state_size, 2), constant in t.
    Book: Alice 13.3. Paper: Smith et al., 2022.

    >>> S5(dim=16)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(self, dim: int, *, state_size: int | None = None, start: str = "legs", rule: str = "hold"):
        super().__init__()
        state_size = max(1, dim // 2) if state_size is None else state_size
        if min(dim, state_size) < 1:
            raise WonderlandError(f"S5 cannot be built with dim={dim}, state_size={state_size}: each is at least 1.")
        check_rule(rule, "S5")
        self.dim, self.state_size, self.rule = dim, state_size, rule
        begin = eigenvalues(state_size, start).float()
        self.log_step = nn.Parameter(log_steps(state_size))
        self.log_damping = nn.Parameter((-begin[:, 0]).log())
        self.frequency = nn.Parameter(begin[:, 1].clone())
        self.inward = nn.Parameter(torch.randn(2, state_size, dim) / math.sqrt(2 * dim))
        self.outward = nn.Parameter(torch.randn(2, dim, state_size) / math.sqrt(2 * state_size))
        self.skip = nn.Parameter(torch.randn(dim))
        self.out = nn.Linear(dim, dim)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        return (*super().laws(), laws.strict_causality, laws.shift_equivariance)

    def layout(self) -> Layout:
        return (Slot((self.state_size, 2)),)

    def steps(self) -> tuple[Tensor, Tensor]:
        """Decay and input weight of one step, complex (state_size,)."""
        a = torch.complex(-torch.exp(wide(self.log_damping)), wide(self.frequency))
        return discretise(torch.exp(wide(self.log_step)), a, self.rule)

    def kernel(self, t: int) -> Tensor:
        """The response of h to an impulse, without the skip: (t, dim, dim), outputs before inputs."""
        decay, weight = self.steps()
        inward = torch.complex(*self.inward) * weight.unsqueeze(1)
        return 2 * torch.einsum("on,nt,ni->toi", torch.complex(*self.outward), powers(decay, t), inward).real

    def kernel_multiply_adds(self, t: int) -> int:
        """Products of one step outside its projections: one complex product for each state."""
        return 4 * self.state_size

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        decay, weight = self.steps()
        drive = torch.complex(*wide(F.linear(x, self.inward.flatten(0, 1))).chunk(2, 2)) * weight
        states, last = scan_states(decay, drive, None if state is None else state[0], mask)
        parts = torch.cat([states.real, -states.imag], 2).to(x.dtype)
        h = 2 * F.linear(parts, torch.cat([self.outward[0], self.outward[1]], 1)) + self.skip * x
        return self.out(F.gelu(h)), (last.to(x.dtype),)
