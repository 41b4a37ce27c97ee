"""The long convolution: a kernel as long as the sequence, computed by a small network instead of stored tap by tap."""

import math

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import at_least_one
from wonderland.nn.contract.left_context import last_context, prepend_context
from wonderland.nn.contract.mixer import Mixer, hide
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.ops.fft_convolution import fft_convolution


@part
class LongConvolution(Mixer):
    r"""Each feature convolved with its own implicit kernel, by FFT.

    .. math::
        y_i = d \odot x_i + \sum_{j=0}^{n-1} K_j \odot x_{i-j}, \qquad
        K_j = \frac{1}{\sqrt n}\, e^{-\alpha j / n} \odot
        \mathrm{net}\big(j / n,\; \sin(\pi k j / n),\; \cos(\pi k j / n)\big)_{k = 1 \dots}

    A network of two layers with sines maps the offset j to the tap of every feature, so the number of parameters does not
    depend on the length n; a window decays at a rate :math:`\alpha` learned for each feature. With causal=False offsets
    run in both directions. FFT leaves rounding of the future in the past, so causality is not exact to the bit.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the last tokens (b, length - 1, dim), whatever t.
    length: how many tokens an output sees, itself included. bands: pairs of sine and cosine of the offset. hidden: width of
    the network.
    Book: Alice 13.3 (long convolutions). Paper: Romero et al., 2022 (CKConv); Poli et al., 2023 (Hyena).

    >>> LongConvolution(dim=4, length=64)(torch.randn(2, 100, 4)).shape
    torch.Size([2, 100, 4])
    """

    def __init__(self, dim: int, *, length: int = 1024, bands: int = 8, hidden: int = 32, causal: bool = True):
        super().__init__()
        if length < 1:
            raise WonderlandError(f"LongConvolution needs a length of at least 1, not {length}.")
        at_least_one("LongConvolution", bands=bands, hidden=hidden)
        self.dim, self.causal, self.length, self.bands = dim, causal, length, bands
        self.receptive_field = (length - 1, 0 if causal else length - 1)
        self.enter, self.leave = nn.Linear(1 + 2 * bands, hidden), nn.Linear(hidden, dim)
        self.decay = nn.Parameter(torch.linspace(0, math.log(16), dim))
        self.skip = nn.Parameter(torch.ones(dim))

    def laws(self):
        from wonderland import laws

        alone = (laws.permutation_equivariance,) if self.length == 1 else ()
        return (*super().laws(), *alone, laws.shift_equivariance, laws.locality)

    def layout(self) -> Layout:
        return (Slot((self.length - 1, self.dim)),)

    def kernel(self, taps: int | None = None) -> Tensor:
        """The first taps of the kernel (taps, dim); all offsets from the most negative on if it is not causal."""
        first, most = (0 if self.causal else 1 - self.length), self.length
        last = most if taps is None else min(most, first + taps)
        share = torch.arange(first, last, device=self.skip.device).unsqueeze(1).to(self.skip) / self.length
        waves = share * torch.arange(1, self.bands + 1, device=self.skip.device) * math.pi
        taps_of_net = self.leave(torch.sin(self.enter(torch.cat([share, waves.sin(), waves.cos()], 1))))
        # Scaled so that outputs have the same magnitude for every length.
        return taps_of_net * torch.exp(-share.abs() * self.decay.exp()) * self.length**-0.5

    def whole(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if not self.causal:
            return super().whole(x, mask)
        x = hide(x, mask)
        return hide(self.skip * x + fft_convolution(x, self.kernel(x.shape[1])), mask)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        reach = self.length - 1
        if not self.causal:
            # An output that sees `reach` tokens ahead is the causal one, that many tokens later.
            t, near = x.shape[1], min(reach, x.shape[1] - 1)
            taps = self.kernel()[reach - near : reach + near + 1]
            late = fft_convolution(nn.functional.pad(x, (0, 0, 0, near)), taps)
            return self.skip * x + late[:, near : near + t], ()
        full = prepend_context(x, None if state is None else state[0], reach)
        y = fft_convolution(x, self.kernel(), full[:, :reach])
        return self.skip * x + y, (last_context(full, mask, reach),)
