r"""Convolution in two dimensions, written as the sum it is, as one matrix product, as a product of spectra, as a matrix.

.. math:: y_{o,i,j} = b_o + \sum_{c,k,l} w_{o,c,k,l}\; x_{c,\; s i + d k - p,\; s j + d l - p}

with stride s, dilation d, padding p; outside the image x is 0. With groups, outputs of a group read the channels of that group only.
It is what machine learning calls convolution, without the flip of the kernel. All forms equal `torch.nn.functional.conv2d` in values
and gradients. Shapes: x (b, c, h, w), weight (out, c / groups, k, l) -> (b, out, h', w').
Book: Alice 7; D2L 7.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError


def output_size(side: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """The side of a map after a convolution or pooling: floor((side + 2 p - d (k - 1) - 1) / s) + 1.

    >>> output_size(32, 3, stride=2, padding=1)
    16
    """
    found = (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if found < 1:
        raise WonderlandError(f"A kernel of {kernel} does not fit a side of {side} with padding {padding}.")
    return found


def transposed_size(
    side: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1, extra: int = 0
) -> int:
    """The side after a transposed convolution: (side - 1) s - 2 p + d (k - 1) + extra + 1; D2L 14.10.

    >>> transposed_size(16, 4, stride=2, padding=1)
    32
    """
    return (side - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1


def reference_convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: int = 1, padding: int = 0, dilation: int = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The sum as it is written, one place of the kernel after another.

    >>> reference_convolution(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).flatten().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    rows, columns = _sizes(x, weight, stride, padding, dilation, groups)
    padded = F.pad(x, (padding,) * 4)
    y = x.new_zeros(x.shape[0], weight.shape[0], rows, columns)
    outs, ins = weight.shape[0] // groups, weight.shape[1]
    for group in range(groups):
        own = slice(group * outs, (group + 1) * outs)
        read = padded[:, group * ins : (group + 1) * ins]
        total = y[:, own]
        for k in range(weight.shape[2]):
            for l in range(weight.shape[3]):
                top, left = k * dilation, l * dilation
                piece = read[
                    :,
                    :,
                    top : top + (rows - 1) * stride + 1 : stride,
                    left : left + (columns - 1) * stride + 1 : stride,
                ]
                total = total + torch.einsum("oc,bchw->bohw", weight[own, :, k, l], piece)
        y = torch.cat([y[:, : own.start], total, y[:, own.stop :]], 1)
    return y if bias is None else y + bias.view(-1, 1, 1)


def by_unfold(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: int = 1, padding: int = 0, dilation: int = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """One matrix product of the kernels with the patches that each output reads (im2col).

    >>> by_unfold(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).flatten().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    rows, columns = _sizes(x, weight, stride, padding, dilation, groups)
    patches = F.unfold(x, tuple(weight.shape[2:]), dilation=dilation, padding=padding, stride=stride)
    patches = patches.unflatten(1, (groups, -1))
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1)
    y = torch.einsum("gok,bgkn->bgon", kernels, patches).flatten(1, 2).unflatten(2, (rows, columns))
    return y if bias is None else y + bias.view(-1, 1, 1)


def by_fft(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, padding: int = 0) -> Tensor:
    """A product of spectra, for stride 1: cost independent of the size of the kernel.

    >>> by_fft(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).round().flatten().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    rows, columns = _sizes(x, weight, 1, padding, 1, 1)
    x = F.pad(x, (padding,) * 4)
    size = tuple(x.shape[2:])
    # A correlation is a product with the conjugate; what wraps around lies outside the outputs that are kept.
    spectrum = torch.fft.rfft2(weight, s=size).conj()
    y = torch.fft.irfft2(torch.einsum("bchw,ochw->bohw", torch.fft.rfft2(x), spectrum), s=size)[..., :rows, :columns]
    return y if bias is None else y + bias.view(-1, 1, 1)


def toeplitz(
    weight: Tensor, height: int, width: int, *, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Tensor:
    """The matrix of a convolution: (out h' w', c h w), with shared weights along its diagonals and zeros elsewhere.

    Its transpose is the transposed convolution.

    >>> toeplitz(torch.tensor([[[[1.0, 2.0]]]]), 1, 3).tolist()
    [[1.0, 2.0, 0.0], [0.0, 1.0, 2.0]]
    """
    channels = weight.shape[1]
    basis = torch.eye(channels * height * width, dtype=weight.dtype, device=weight.device)
    images = basis.view(-1, channels, height, width)
    return by_unfold(images, weight, stride=stride, padding=padding, dilation=dilation).flatten(1).t()


def locally_connected(x: Tensor, weight: Tensor, *, stride: int = 1, padding: int = 0) -> Tensor:
    """A convolution that does not share: a kernel for each place. Shapes: weight (h', w', out, c, k, l) -> (b, out, h', w').

    >>> locally_connected(torch.ones(1, 1, 2, 2), torch.ones(2, 1, 3, 1, 1, 2)).shape
    torch.Size([1, 3, 2, 1])
    """
    patches = F.unfold(x, tuple(weight.shape[-2:]), padding=padding, stride=stride)
    if patches.shape[2] != weight.shape[0] * weight.shape[1]:
        raise WonderlandError(
            f"A locally connected layer of {weight.shape[0]} x {weight.shape[1]} places cannot read {patches.shape[2]} patches."
        )
    kernels = weight.flatten(3).flatten(0, 1)
    return torch.einsum("nok,bkn->bon", kernels, patches).unflatten(2, tuple(weight.shape[:2]))


def _sizes(x: Tensor, weight: Tensor, stride: int, padding: int, dilation: int, groups: int) -> tuple[int, int]:
    if x.dim() != 4 or weight.dim() != 4 or x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise WonderlandError(
            f"A convolution takes images (b, c, h, w) and kernels (out, c / groups, k, l), not {tuple(x.shape)} and "
            f"{tuple(weight.shape)} in {groups} groups."
        )
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return output_size(x.shape[2], weight.shape[2], **options), output_size(x.shape[3], weight.shape[3], **options)
