"""Mel scales: power spectra summed over triangles that widen with pitch, in decibels, and their cosine transform."""

import functools
import math
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.sound.phase import griffin_lim
from wonderland.ops.sound.spectrum import frames, squared_magnitude, window_of

SCALES = ("slaney", "htk")
FRAMES = 512  # frames that are transformed at a time, so that their spectra stay in the cache
_LINEAR, _BREAK, _STEP = (
    200 / 3,
    1000.0,
    math.log(6.4) / 27,
)  # Slaney: Hz for each mel below 1 kHz, the log step above it


def hertz_to_mel(hertz: Tensor, scale: str = "slaney") -> Tensor:
    r"""Pitch in mel.

    .. math:: m_\mathrm{HTK} = 2595 \log_{10}(1 + f / 700), \qquad
        m_\mathrm{Slaney} = \begin{cases} 3 f / 200 & f < 1000 \\ 15 + 27 \ln(f / 1000) / \ln 6.4 & \text{otherwise} \end{cases}

    >>> hertz_to_mel(torch.tensor([1000.0, 6400.0]))
    tensor([15., 42.])
    """
    _check_scale(scale)
    if scale == "htk":
        return 2595 * torch.log10(1 + hertz / 700)
    above = _BREAK / _LINEAR + torch.log(hertz.clamp_min(1e-30) / _BREAK) / _STEP
    return torch.where(hertz < _BREAK, hertz / _LINEAR, above)


def mel_to_hertz(mel: Tensor, scale: str = "slaney") -> Tensor:
    """The inverse of `hertz_to_mel`.

    >>> mel_to_hertz(torch.tensor([15.0, 42.0]))
    tensor([1000., 6400.])
    """
    _check_scale(scale)
    if scale == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    return torch.where(mel < _BREAK / _LINEAR, mel * _LINEAR, _BREAK * torch.exp(_STEP * (mel - _BREAK / _LINEAR)))


@functools.lru_cache(32)
def _filters(mels: int, n_fft: int, rate: int, low: float, high: float, scale: str, norm: str | None) -> Tensor:
    ends = hertz_to_mel(torch.tensor([low, high], dtype=torch.float64), scale)
    steps = torch.linspace(0, 1, mels + 2, dtype=torch.float64)
    corners = mel_to_hertz(ends[0] + (ends[1] - ends[0]) * steps, scale)
    bins = torch.arange(n_fft // 2 + 1, dtype=torch.float64)[:, None] * rate / n_fft
    left, centre, right = corners[:-2], corners[1:-1], corners[2:]
    triangles = torch.minimum((bins - left) / (centre - left), (right - bins) / (right - centre)).clamp_min(0)
    return triangles * 2 / (right - left) if norm == "slaney" else triangles


def mel_filters(
    mels: int,
    n_fft: int,
    rate: int,
    *,
    low: float = 0.0,
    high: float | None = None,
    scale: str = "slaney",
    norm: str | None = "slaney",
) -> Tensor:
    r"""Triangles of equal width on the mel scale, in float64. Shape: (n_fft / 2 + 1, mels).

    With `norm` "slaney" each has area 1 over Hz; without it (None) height 1. The defaults are librosa's; torchaudio's are
    scale="htk" and norm=None.

    >>> mel_filters(4, 64, 8000).shape
    torch.Size([33, 4])
    """
    high = rate / 2 if high is None else high
    if mels < 1 or n_fft < 2 or rate < 1 or not 0 <= low < high <= rate / 2:
        raise WonderlandError(
            f"Mel filters need at least one mel and 0 <= low < high <= rate / 2, not mels={mels}, low={low:g}, high={high:g} "
            f"at a rate of {rate}."
        )
    if norm not in (None, "slaney"):
        raise WonderlandError(f"Mel filters are normed by 'slaney' or not (None), not {norm!r}.")
    _check_scale(scale)
    return _filters(mels, n_fft, int(rate), float(low), float(high), scale, norm).clone()


def mel_spectrogram(
    x: Tensor,
    rate: int,
    *,
    n_fft: int = 400,
    hop: int = 160,
    mels: int = 80,
    window: Tensor | None = None,
    pad: str | None = "reflect",
    **filters: Any,
) -> Tensor:
    """The power spectrum of each frame, summed over mel filters (`mel_filters`). Shapes: x (..., samples) -> (..., frames, mels).

    >>> mel_spectrogram(torch.randn(2, 8000), 8000, n_fft=256, hop=80, mels=40).shape
    torch.Size([2, 101, 40])
    """
    pieces, weights = frames(x, n_fft, hop, pad), window_of(window, n_fft, x)
    bands = mel_filters(mels, n_fft, rate, **filters).to(x)
    spectra = [squared_magnitude(torch.fft.rfft(block * weights)) @ bands for block in pieces.split(FRAMES, -2)]
    return spectra[0] if len(spectra) == 1 else torch.cat(spectra, -2)


def decibels(power: Tensor, *, floor: float = 1e-10, reach: float | None = None) -> Tensor:
    r"""Power in decibels, :math:`10 \log_{10} \max(p, \text{floor})`; with `reach`, at most so many below the largest of all.

    >>> decibels(torch.tensor([1.0, 0.1, 0.0]), reach=50)
    tensor([  0., -10., -50.])
    """
    level = 10 * torch.log10(power.clamp_min(floor))
    return level if reach is None else torch.maximum(level, level.max() - reach)


def power_of(level: Tensor) -> Tensor:
    """The inverse of `decibels`.

    >>> power_of(torch.tensor([0.0, -10.0]))
    tensor([1.0000, 0.1000])
    """
    return 10 ** (level / 10)


def log_mel(x: Tensor, rate: int, *, reach: float | None = None, **options: Any) -> Tensor:
    """The mel spectrogram in decibels. Shapes: x (..., samples) -> (..., frames, mels).

    >>> log_mel(torch.zeros(800), 8000, n_fft=256, hop=80, mels=40).shape
    torch.Size([11, 40])
    """
    return decibels(mel_spectrogram(x, rate, **options), reach=reach)


def cosine_transform(count: int, size: int) -> Tensor:
    r"""The orthonormal cosine transform (DCT-II) as a matrix (size, count) in float64.

    .. math:: D_{nk} = \sqrt{2 / N}\, \cos(\pi k (2 n + 1) / 2 N), \qquad D_{n0} = \sqrt{1 / N}
    """
    n, k = torch.arange(size, dtype=torch.float64)[:, None], torch.arange(count, dtype=torch.float64)
    matrix = torch.cos(math.pi * k * (2 * n + 1) / (2 * size)) * math.sqrt(2 / size)
    matrix[:, 0] = math.sqrt(1 / size)
    return matrix


def mfcc(x: Tensor, rate: int, *, count: int = 20, reach: float | None = 80.0, **options: Any) -> Tensor:
    """Mel-frequency cepstral coefficients: the cosine transform of the log-mel spectrogram. Shapes: (..., samples) -> (..., frames, count).

    >>> mfcc(torch.randn(800), 8000, count=13, n_fft=256, hop=80, mels=40).shape
    torch.Size([11, 13])
    """
    level = log_mel(x, rate, reach=reach, **options)
    if not 1 <= count <= level.shape[-1]:
        raise WonderlandError(f"From {level.shape[-1]} mels come 1 to {level.shape[-1]} coefficients, not {count}.")
    return level @ cosine_transform(count, level.shape[-1]).to(level)


def from_mel(
    mel: Tensor,
    rate: int,
    *,
    n_fft: int = 400,
    hop: int = 160,
    iterations: int = 32,
    length: int | None = None,
    window: Tensor | None = None,
    pad: str | None = "reflect",
    **filters: Any,
) -> Tensor:
    """A signal from a mel spectrogram: spectra by least squares, none below zero, and phases by `griffin_lim`.

    Shapes: mel (..., frames, mels) -> (..., samples).

    >>> from_mel(torch.rand(11, 40), 8000, n_fft=256, hop=80).shape
    torch.Size([800])
    """
    weights = mel_filters(mel.shape[-1], n_fft, rate, **filters)
    power = (mel.double() @ torch.linalg.pinv(weights)).clamp_min(0).to(mel.dtype)
    return griffin_lim(power.sqrt(), n_fft, hop, iterations=iterations, length=length, window=window, pad=pad)


def _check_scale(scale: str) -> None:
    if scale not in SCALES:
        raise WonderlandError(f"A mel scale is {' or '.join(SCALES)}, not {scale!r}.")
