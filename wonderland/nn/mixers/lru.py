"""The linear recurrent unit: a linear recurrence with eigenvalues in a ring inside the unit circle."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.mixer import Mixer
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.nn.mixers.state_space import powers, scan_states, wide


@part
class LRU(Mixer):
    r"""A complex diagonal recurrence, stable for every value of its parameters.

    .. math::
        s_i = \lambda \odot s_{i-1} + \gamma \odot (B x_i), \qquad h_i = \mathrm{Re}(C s_i) + D \odot x_i, \qquad
        y_i = W\, \mathrm{gelu}(h_i)

    .. math::
        \lambda = e^{-e^\nu + i e^\theta}, \qquad \gamma = \sqrt{1 - |\lambda|^2} \text{ at the start}

    Eigenvalues begin between the radii `smallest` and `largest`; the scale :math:`\gamma` starts at the value that keeps
    the state's size and is trained.

    Shapes: x (b, t, dim) -> (b, t, dim); state (b, state_size, 2), constant in t.
    Book: Alice 13.3. Paper: Orvieto et al., 2023.

    >>> LRU(dim=16)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self, dim: int, *, state_size: int | None = None, smallest: float | int = 0.5, largest: float | int = 0.99
    ):
        super().__init__()
        state_size = dim if state_size is None else state_size
        if min(dim, state_size) < 1 or not 0 <= smallest < largest < 1:
            raise WonderlandError(
                f"LRU cannot be built with dim={dim}, state_size={state_size}, smallest={smallest}, largest={largest}: "
                "sizes are at least 1, and 0 <= smallest < largest < 1."
            )
        self.dim, self.state_size = dim, state_size
        # Uniform over the area of the ring.
        radius = torch.sqrt(torch.rand(state_size) * (largest**2 - smallest**2) + smallest**2).clamp(min=1e-3)
        self.nu = nn.Parameter(torch.log(-torch.log(radius)))
        self.theta = nn.Parameter(torch.log(math.pi * torch.rand(state_size).clamp(min=1e-3)))
        self.log_scale = nn.Parameter(0.5 * torch.log1p(-radius.square()))
        self.inward = nn.Parameter(torch.randn(2, state_size, dim) / math.sqrt(2 * dim))
        self.outward = nn.Parameter(torch.randn(2, dim, state_size) / math.sqrt(state_size))
        self.skip = nn.Parameter(torch.randn(dim))
        self.out = nn.Linear(dim, dim)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        return (*super().laws(), laws.strict_causality, laws.shift_equivariance)

    def layout(self) -> Layout:
        return (Slot((self.state_size, 2)),)

    def decay(self) -> Tensor:
        """The eigenvalues, complex (state_size,), inside the unit circle."""
        return torch.exp(torch.complex(-torch.exp(wide(self.nu)), torch.exp(wide(self.theta))))

    def kernel(self, t: int) -> Tensor:
        """The response of h to an impulse, without the skip: (t, dim, dim), outputs before inputs."""
        inward = torch.complex(*self.inward) * torch.exp(self.log_scale).unsqueeze(1)
        return torch.einsum("on,nt,ni->toi", torch.complex(*self.outward), powers(self.decay(), t), inward).real

    def kernel_multiply_adds(self, t: int) -> int:
        """Products of one step outside its projections: one complex product for each state."""
        return 4 * self.state_size

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        inward = (self.inward * torch.exp(self.log_scale).unsqueeze(1)).flatten(0, 1)
        drive = torch.complex(*wide(F.linear(x, inward)).chunk(2, 2))
        states, last = scan_states(self.decay(), drive, None if state is None else state[0], mask)
        parts = torch.cat([states.real, -states.imag], 2).to(x.dtype)
        h = F.linear(parts, torch.cat([self.outward[0], self.outward[1]], 1)) + self.skip * x
        return self.out(F.gelu(h)), (last.to(x.dtype),)
