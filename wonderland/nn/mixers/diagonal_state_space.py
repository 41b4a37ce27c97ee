"""What S4D and DSS share: a bank of damped oscillators for each channel, as a long convolution or as a recurrence."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.mixer import Mixer, hide, lengths
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.nn.mixers.state_space import AT_ONCE, eigenvalues, log_steps, powers, wide
from wonderland.ops.fft_convolution import fft_convolution
from wonderland.ops.over_time import is_exporting
from wonderland.ops.scan import linear_scan


class DiagonalStateSpace(Mixer):
    """A diagonal, time-invariant state space for each channel; `steps` says how continuous time becomes steps.

    The whole sequence is a convolution by FFT; streaming uses the recurrence. `pairs` is 2 where a state stands for a conjugate
    pair of oscillators, 1 where it stands for itself.
    """

    no_decay = frozenset({"log_damping", "frequency"})
    pairs = 2

    def __init__(self, dim: int, state_size: int, start: str):
        super().__init__()
        name = type(self).__name__
        if min(dim, state_size) < 1:
            raise WonderlandError(
                f"{name} cannot be built with dim={dim}, state_size={state_size}: each is at least 1."
            )
        self.dim, self.state_size = dim, state_size
        begin = eigenvalues(state_size, start).float()
        self.log_step = nn.Parameter(log_steps(dim))
        self.log_damping = nn.Parameter((-begin[:, 0]).log().repeat(dim, 1))
        self.frequency = nn.Parameter(begin[:, 1].repeat(dim, 1))
        self.readout = nn.Parameter(torch.randn(dim, state_size, 2) * 0.5**0.5)
        self.skip = nn.Parameter(torch.randn(dim))
        self.out = nn.Linear(dim, dim)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        return (*super().laws(), laws.shift_equivariance)

    def layout(self) -> Layout:
        return (Slot((self.dim, self.state_size, 2)),)

    @abstractmethod
    def steps(self) -> tuple[Tensor, Tensor, Tensor]:
        """Decay, input weight and readout of one step, each complex (dim, state_size)."""

    def continuous(self) -> tuple[Tensor, Tensor, Tensor]:
        """The length of a step (dim, 1), and eigenvalues and readout, complex (dim, state_size)."""
        a = torch.complex(-torch.exp(wide(self.log_damping)), wide(self.frequency))
        return torch.exp(wide(self.log_step)).unsqueeze(1), a, torch.view_as_complex(wide(self.readout))

    def kernel(self, t: int) -> Tensor:
        """The response to an impulse, t steps long: (t, dim)."""
        decay, weight, readout = self.steps()
        return self.pairs * torch.einsum("dn,dnt->td", readout * weight, powers(decay, t)).real

    def kernel_multiply_adds(self, t: int) -> int:
        """Products of one step outside its projection: complex states, their inputs and readouts."""
        return 8 * self.dim * self.state_size

    def whole(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = hide(x, mask)
        if is_exporting():  # a kernel of free length is longer than its recurrence
            return hide(self.mix(x, None, None, mask)[0], mask)
        h = fft_convolution(x, self.kernel(x.shape[1])) + self.skip * x
        return hide(self.out(F.gelu(h)), mask)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        decay, weight, readout = self.steps()
        s = None if state is None else torch.view_as_complex(wide(state[0]).contiguous()).flatten(1)
        real = None if mask is None else lengths(mask)
        if is_exporting():
            return self._exported(x, decay, weight, readout, state, real)
        pieces = []
        rows = max(16, AT_ONCE // (x.shape[0] * decay.numel()))
        for low in range(0, x.shape[1], rows):
            piece = x[:, low : low + rows]
            drive = (wide(piece).unsqueeze(3) * weight).flatten(2)
            left = None if real is None else (real - low).clamp(0, piece.shape[1])
            states = linear_scan(decay.flatten(), drive, s, lengths=left)
            s = states[:, -1]
            pieces.append(self.pairs * (states.view(*piece.shape, -1) * readout).real.sum(3))
        assert s is not None
        h = torch.cat(pieces, 1).to(x.dtype) + self.skip * x
        last = torch.view_as_real(s.view(x.shape[0], *decay.shape)).to(x.dtype)
        return self.out(F.gelu(h)), (last,)

    def _exported(
        self, x: Tensor, decay: Tensor, weight: Tensor, readout: Tensor, state: State | None, real: Tensor | None
    ) -> tuple[Tensor, State]:
        """`mix` in a program that is exported: in one piece, and complex numbers as pairs of real ones."""
        pairs = (wide(x)[..., None, None] * torch.view_as_real(weight)).flatten(2, 3)
        s = None if state is None else torch.view_as_complex(wide(state[0]).flatten(1, 2).contiguous())
        states = torch.view_as_real(linear_scan(decay.flatten(), torch.view_as_complex(pairs), s, lengths=real))
        states = states.unflatten(2, decay.shape)
        out = torch.view_as_real(readout)
        h = (
            self.pairs * (states[..., 0] * out[..., 0] - states[..., 1] * out[..., 1]).sum(3).to(x.dtype)
            + self.skip * x
        )
        return self.out(F.gelu(h)), (states[:, -1].to(x.dtype),)
