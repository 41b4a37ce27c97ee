"""S4D: a bank of damped oscillators for each channel, as a long convolution or as a recurrence."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.mixer import Mixer, hide, lengths
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.nn.mixers.state_space import AT_ONCE, check_rule, discretise, eigenvalues, log_steps, powers, wide
from wonderland.ops.fft_convolution import fft_convolution
from wonderland.ops.over_time import is_exporting
from wonderland.ops.scan import linear_scan


@part
class S4D(Mixer):
    r"""A diagonal state space for each channel, initialised by HiPPO.

    .. math::
        s_i = \bar A \odot s_{i-1} + \bar B\, x_i, \qquad h_i = 2\,\mathrm{Re}(C^\top s_i) + D x_i, \qquad
        y_i = W\, \mathrm{gelu}(h_i)

    with `state_size` complex oscillators a channel (half of the conjugate pairs; the factor 2 stands for the other half).
    It is time-invariant, so the whole sequence is a convolution, :math:`h = K * x` with
    :math:`K_l = 2\,\mathrm{Re}(C^\top \bar A^l \bar B)`, done by FFT; streaming uses the recurrence. `start` chooses the
    frequencies (`legs`, `lin`, `inv`), `rule` how continuous time becomes steps (`hold`, `bilinear`, `euler`).

    Shapes: x (b, t, dim) -> (b, t, dim); state (b, dim, state_size, 2), constant in t.
    Book: Alice 13.3. Papers: Gu et al., 2021 and 2022.

    >>> S4D(dim=16)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    no_decay = frozenset({"log_damping", "frequency"})

    def __init__(self, dim: int, *, state_size: int = 16, start: str = "legs", rule: str = "hold"):
        super().__init__()
        if min(dim, state_size) < 1:
            raise WonderlandError(f"S4D cannot be built with dim={dim}, state_size={state_size}: each is at least 1.")
        check_rule(rule, "S4D")
        self.dim, self.state_size, self.rule = dim, state_size, rule
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

    def steps(self) -> tuple[Tensor, Tensor, Tensor]:
        """Decay, input weight and readout of one step, each complex (dim, state_size)."""
        a = torch.complex(-torch.exp(wide(self.log_damping)), wide(self.frequency))
        decay, weight = discretise(torch.exp(wide(self.log_step)).unsqueeze(1), a, self.rule)
        return decay, weight, torch.view_as_complex(wide(self.readout))

    def kernel(self, t: int) -> Tensor:
        """The response to an impulse, t steps long: (t, dim)."""
        decay, weight, readout = self.steps()
        return 2 * torch.einsum("dn,dnt->td", readout * weight, powers(decay, t)).real

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
            pieces.append(2 * (states.view(*piece.shape, -1) * readout).real.sum(3))
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
        h = 2 * (states[..., 0] * out[..., 0] - states[..., 1] * out[..., 1]).sum(3).to(x.dtype) + self.skip * x
        return self.out(F.gelu(h)), (states[:, -1].to(x.dtype),)
