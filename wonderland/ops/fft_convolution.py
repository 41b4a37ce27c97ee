"""Long convolutions by the fast Fourier transform: a kernel as long as the sequence at the price of a few transforms."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.ops import native, shapes
from wonderland.ops.over_time import is_exporting

Rows = Float[Tensor, "b t d"]


def fft_convolution(x: Rows, kernel: Float[Tensor, "k d"], tail: Float[Tensor, "b p d"] | None = None) -> Rows:
    r"""Each channel with its own kernel, the newest tap first.

    .. math:: y_i = \sum_{j=0}^{k-1} K_j \odot x_{i-j}

    `tail` holds the inputs before the first, as many as there are (at most k - 1 are used); without it they are 0. Rows are
    padded with zeros so that their ends do not wrap around. One position alone is summed directly.

    >>> fft_convolution(torch.ones(1, 3, 1), torch.tensor([[1.0], [10.0]])).flatten()
    tensor([ 1., 11., 11.])
    """
    shapes.agree("fft_convolution", x=(x, "b t d"), kernel=(kernel, "k d"), tail=(tail, "b p d ?"))
    shapes.real("fft_convolution", x=x, kernel=kernel, tail=tail)
    if x.dtype in (torch.float16, torch.bfloat16) or kernel.dtype != x.dtype:
        # Transforms have no half precision.
        wide = [None if y is None else y.float() if y.element_size() < 4 else y for y in (x, kernel, tail)]
        x_wide, kernel_wide, tail_wide = native.common_dtype(*wide)
        return fft_convolution(x_wide, kernel_wide, tail_wide).to(x.dtype)
    if is_exporting():
        return _exported(x, kernel, tail)
    t, taps = x.shape[1], kernel.shape[0]
    if tail is not None:
        x = torch.cat([tail[:, max(0, tail.shape[1] - taps + 1) :], x], 1)
    full = x.shape[1]
    kernel = kernel[:full]
    if t == 1:
        return (x[:, full - len(kernel) :] * kernel.flip(0)).sum(1, keepdim=True)
    # What wraps around falls on the first taps - 1 places; those inside the tail are not read.
    size = fast_length(full + max(0, len(kernel) - 1 - (full - t)))
    # Transforms run along memory: two copies cost less than strided transforms.
    spectrum = torch.fft.rfft(x.transpose(1, 2), size) * torch.fft.rfft(kernel.t(), size)
    return torch.fft.irfft(spectrum, size)[..., full - t : full].transpose(1, 2)


def _exported(x: Rows, kernel: Tensor, tail: Tensor | None) -> Rows:
    """A convolution of each channel: lengths of transforms would fix the number of steps."""
    t, taps = x.shape[1], kernel.shape[0]
    longer = x if tail is None else torch.cat([tail, x], 1)
    padded = F.pad(longer.transpose(1, 2), (taps - 1, 0))
    y = F.conv1d(padded, kernel.flip(0).t().unsqueeze(1), groups=x.shape[2])
    return y[..., y.shape[2] - t :].transpose(1, 2)


def reference(x: Rows, kernel: Float[Tensor, "k d"], tail: Float[Tensor, "b p d"] | None = None) -> Rows:
    """The sum, tap by tap."""
    t, taps = x.shape[1], kernel.shape[0]
    past = x.new_zeros(x.shape[0], taps - 1, x.shape[2])
    longer = torch.cat([past, x] if tail is None else [past, tail, x], 1)
    start = longer.shape[1] - t
    y = torch.zeros_like(x)
    for j in range(taps):
        y = y + kernel[j] * longer[:, start - j : start - j + t]
    return y


def fast_length(n: int) -> int:
    """The smallest number from n on without prime factors above 5: transforms of such lengths are fast.

    >>> [fast_length(n) for n in (1, 7, 31, 1021)]
    [1, 8, 32, 1024]
    """
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            rest = -(-n // three)
            best = min(best, three << (rest - 1).bit_length())
            three *= 3
        five *= 5
    return best
