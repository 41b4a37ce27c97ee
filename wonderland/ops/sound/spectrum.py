"""Short-time Fourier transform: frames of a signal, windowed, each with its spectrum; and the way back by overlapping and adding."""

import functools
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError

PADS = ("reflect", "constant")


@functools.lru_cache(32)
def _hann(length: int) -> Tensor:
    return torch.hann_window(length, periodic=True, dtype=torch.float64)


def hann(length: int) -> Tensor:
    r"""The periodic Hann window in float64. Shape: (length,).

    .. math:: w_n = \tfrac{1}{2} - \tfrac{1}{2} \cos(2 \pi n / N)

    >>> hann(4).float()
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _hann(length).clone()


def window_of(window: Tensor | None, n_fft: int, like: Tensor) -> Tensor:
    """The window at the middle of `n_fft` samples; Hann by default."""
    if window is None:
        return _hann(n_fft).to(like.device, like.dtype)
    if window.dim() != 1 or not 1 <= len(window) <= n_fft:
        raise WonderlandError(f"A window of shape {tuple(window.shape)} does not fit into {n_fft} samples.")
    left = (n_fft - len(window)) // 2
    return F.pad(window.to(like.device, like.dtype), (left, n_fft - len(window) - left))


def check_sizes(n_fft: int, hop: int) -> None:
    if n_fft < 2 or not 1 <= hop <= n_fft:
        raise WonderlandError(
            f"A spectrum needs n_fft of at least 2 and a hop from 1 to n_fft, not n_fft={n_fft}, hop={hop}."
        )


def padded(x: Tensor, n_fft: int, pad: str | None) -> Tensor:
    """The signal with half a frame added at both ends, so that frame i is centred on sample i * hop."""
    if pad is None:
        return x
    if pad not in PADS:
        raise WonderlandError(f"A signal is padded by {' or '.join(PADS)}, or not at all (None), not {pad!r}.")
    half = n_fft // 2
    if pad == "reflect" and x.shape[-1] <= half:
        raise WonderlandError(
            f"A signal of {x.shape[-1]} samples cannot be reflected by {half}: pad it with zeros (pad='constant')."
        )
    flat = x.reshape(1, -1, x.shape[-1])
    return F.pad(flat, (half, half), mode=pad).reshape(*x.shape[:-1], x.shape[-1] + 2 * half)


def frames(x: Tensor, n_fft: int, hop: int, pad: str | None) -> Tensor:
    """Overlapping pieces of a signal, as a view: (..., samples) -> (..., frames, n_fft)."""
    check_sizes(n_fft, hop)
    longer = padded(x, n_fft, pad)
    if longer.shape[-1] < n_fft:
        raise WonderlandError(f"A signal of {x.shape[-1]} samples is shorter than one frame of {n_fft}.")
    return longer.unfold(-1, n_fft, hop)


def stft(x: Tensor, n_fft: int, hop: int, *, window: Tensor | None = None, pad: str | None = "reflect") -> Tensor:
    r"""The spectrum of each frame, time first. Shapes: x (..., samples) -> complex (..., frames, n_fft / 2 + 1).

    .. math:: X_{ik} = \sum_{n=0}^{N-1} w_n\, x_{ih + n}\, e^{-2 \pi i k n / N}

    `window` is Hann over the whole frame by default; a shorter one is centred. With `pad` ("reflect" or "constant" zeros)
    half a frame is added at both ends, and there are 1 + floor(samples / hop) frames; without it (None) only whole frames
    count. Equal to `torch.stft` and `librosa.stft`, transposed.

    >>> stft(torch.ones(16), 8, 4).shape
    torch.Size([5, 5])
    """
    return torch.fft.rfft(frames(x, n_fft, hop, pad) * window_of(window, n_fft, x))


def reference(x: Tensor, n_fft: int, hop: int, *, window: Tensor | None = None, pad: str | None = "reflect") -> Tensor:
    """The equation of `stft` as a product with a matrix of cosines and sines."""
    n = torch.arange(n_fft, dtype=x.dtype, device=x.device)
    angle = 2 * math.pi * n[:, None] * n[None, : n_fft // 2 + 1] / n_fft
    pieces = frames(x, n_fft, hop, pad) * window_of(window, n_fft, x)
    return torch.complex(pieces @ angle.cos(), -(pieces @ angle.sin()))


def power_spectrum(
    x: Tensor, n_fft: int, hop: int, *, window: Tensor | None = None, pad: str | None = "reflect"
) -> Tensor:
    """The squared magnitude of `stft`. Shapes: x (..., samples) -> (..., frames, n_fft / 2 + 1).

    >>> power_spectrum(torch.ones(16), 8, 4)[2, 0]
    tensor(16.)
    """
    return squared_magnitude(stft(x, n_fft, hop, window=window, pad=pad))


def squared_magnitude(spectrum: Tensor) -> Tensor:
    """The squares of real and imaginary parts, added; a sum over an axis of two is four times slower."""
    parts = torch.view_as_real(spectrum)
    return torch.addcmul(parts[..., 0].square(), parts[..., 1], parts[..., 1])


def istft(
    spectrum: Tensor,
    n_fft: int,
    hop: int,
    *,
    window: Tensor | None = None,
    pad: str | None = "reflect",
    length: int | None = None,
) -> Tensor:
    r"""The signal whose frames are nearest to those of a spectrum, by overlapping and adding.

    .. math:: x_m = \frac{\sum_i w_{m - ih}\, \hat{x}_{i, m - ih}}{\sum_i w_{m - ih}^2}

    With the arguments of `stft` it is its inverse, where every sample is covered by a window that is not zero. `length` cuts or
    fills the result with zeros. Shapes: complex (..., frames, bins) -> (..., samples).

    >>> x = torch.randn(100)
    >>> torch.allclose(istft(stft(x, 16, 4), 16, 4, length=100), x, atol=1e-5)
    True
    """
    check_sizes(n_fft, hop)
    if spectrum.shape[-1] != n_fft // 2 + 1:
        raise WonderlandError(f"A spectrum with n_fft={n_fft} has {n_fft // 2 + 1} bins, not {spectrum.shape[-1]}.")
    pieces = torch.fft.irfft(spectrum, n_fft)
    weights = window_of(window, n_fft, pieces)
    x = overlap_add(pieces * weights, hop)
    norm = overlap_add(weights.square().expand(pieces.shape[-2], n_fft), hop)
    x = x / torch.where(norm > 1e-11, norm, 1)
    if pad is not None:
        half = n_fft // 2
        x = x[..., half : x.shape[-1] - half if length is None else None]
    if length is None:
        return x
    return F.pad(x, (0, max(0, length - x.shape[-1])))[..., :length]


def overlap_add(pieces: Tensor, hop: int) -> Tensor:
    """Add frames at their places. Shapes: (..., frames, n) -> (..., (frames - 1) hop + n)."""
    count, width = pieces.shape[-2:]
    total = (count - 1) * hop + width
    flat = pieces.reshape(-1, count, width).transpose(1, 2)
    joined = F.fold(flat, (1, total), (1, width), stride=(1, hop))
    return joined.reshape(*pieces.shape[:-2], total)
