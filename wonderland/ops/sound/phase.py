"""Griffin-Lim: a signal from magnitudes alone, by going back and forth between spectra and signals."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.sound.spectrum import istft, stft


def griffin_lim(
    magnitude: Tensor,
    n_fft: int,
    hop: int,
    *,
    iterations: int = 32,
    momentum: float = 0.99,
    window: Tensor | None = None,
    pad: str | None = "reflect",
    length: int | None = None,
    phase: Tensor | None = None,
    seed: int = 0,
) -> Tensor:
    r"""A signal whose spectrum has nearly these magnitudes.

    .. math:: t_j = \mathrm{stft}(\mathrm{istft}(M \odot c_{j-1})), \qquad
        c_j = \frac{t_j - \alpha\, t_{j-1}}{|t_j - \alpha\, t_{j-1}|}, \qquad \alpha = \frac{\text{momentum}}{1 + \text{momentum}}

    `phase` (complex, of size 1) is the start; random by `seed` unless given. With momentum 0 this is the algorithm of Griffin
    and Lim, 1984; above it, the fast one of Perraudin et al., 2013. Shapes: magnitude (..., frames, bins) -> (..., samples).

    >>> x = torch.sin(torch.arange(400) / 3)
    >>> griffin_lim(stft(x, 64, 16).abs(), 64, 16, length=400).shape
    torch.Size([400])
    """
    if iterations < 0 or not 0 <= momentum < 1:
        raise WonderlandError(
            f"Griffin-Lim needs 0 or more iterations and a momentum in [0, 1), not {iterations} and {momentum:g}."
        )
    if phase is None:
        generator = torch.Generator().manual_seed(seed)
        angle = 2 * torch.pi * torch.rand(magnitude.shape, generator=generator, dtype=torch.float64)
        phase = torch.polar(torch.ones_like(angle), angle)
    phase = phase.to(magnitude.device, torch.complex128 if magnitude.dtype == torch.float64 else torch.complex64)
    samples = (magnitude.shape[-2] - 1) * hop + (n_fft if pad is None else 0) if length is None else length
    before, share = torch.zeros_like(phase), momentum / (1 + momentum)
    for _ in range(iterations):
        signal = istft(magnitude * phase, n_fft, hop, window=window, pad=pad, length=samples)
        rebuilt = stft(signal, n_fft, hop, window=window, pad=pad)
        phase = rebuilt - share * before
        phase = phase / (phase.abs() + 1e-16)
        before = rebuilt
    return istft(magnitude * phase, n_fft, hop, window=window, pad=pad, length=samples)
