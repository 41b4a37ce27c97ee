"""A convolution of images as a product of spectra, as a matrix, and without shared weights. Book: Alice 7."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.vision.convolution import by_unfold, output_size


def by_fft(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, padding: int = 0) -> Tensor:
    """A product of spectra, for stride 1: cost independent of the size of the kernel.

    >>> by_fft(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).round().flatten().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    rows, columns = (output_size(n, k, padding=padding) for n, k in zip(x.shape[2:], weight.shape[2:], strict=True))
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
