r"""Convolution over one, two or three axes, written as the sum it is, and as one matrix product.

.. math:: y_{o,i,j} = b_o + \sum_{c,k,l} w_{o,c,k,l}\; x_{c,\; s i + d k - p,\; s j + d l - p}

with stride s, dilation d, padding p. With groups, outputs of a group read the channels of that group only. It is what machine learning
calls convolution, without the flip of the kernel. Padding is a number, "valid" (none) or "same" (the map keeps its size, for a stride
of 1); `mode` says what lies outside: "zeros", "reflect", "replicate" or "circular". All forms equal those of `torch.nn.functional` in
values and gradients. Shapes, here for images: x (b, c, h, w), weight (out, c / groups, k, l) -> (b, out, h', w').
Book: Alice 7, 8.1 (one and three axes); D2L 7.
"""

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError

MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


def output_size(side: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """The side of a map after a convolution or pooling: floor((side + 2 p - d (k - 1) - 1) / s) + 1.

    >>> output_size(32, 3, stride=2, padding=1)
    16
    """
    size = (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if size < 1:
        raise WonderlandError(f"A kernel of {kernel} does not fit a side of {side} with padding {padding}.")
    return size


def transposed_size(
    side: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1, extra: int = 0
) -> int:
    """The side after a transposed convolution: (side - 1) s - 2 p + d (k - 1) + extra + 1; D2L 14.10.

    >>> transposed_size(16, 4, stride=2, padding=1)
    32
    """
    return (side - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1


def reference_convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: int = 1, padding: int | str = 0, dilation: int = 1,
    groups: int = 1, mode: str = "zeros",
) -> Tensor:  # fmt: skip
    """The sum as it is written, one place of the kernel after another.

    >>> reference_convolution(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).flatten().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    padded, sides = _padded(x, weight, stride, padding, dilation, groups, mode)
    padded, kernels = padded.unflatten(1, (groups, -1)), weight.unflatten(0, (groups, -1))
    total: Any = 0
    for place in itertools.product(*map(range, weight.shape[2:])):
        firsts = [k * dilation for k in place]
        window = [slice(a, a + (n - 1) * stride + 1, stride) for a, n in zip(firsts, sides, strict=True)]
        total = total + torch.einsum("goc,bgc...->bgo...", kernels[(..., *place)], padded[(..., *window)])
    return _biased(total.flatten(1, 2), bias)


def by_unfold(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: int = 1, padding: int | str = 0, dilation: int = 1,
    groups: int = 1, mode: str = "zeros",
) -> Tensor:  # fmt: skip
    """One matrix product of the kernels with the patches that each output reads (im2col).

    >>> by_unfold(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).flatten().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    patches, sides = _padded(x, weight, stride, padding, dilation, groups, mode)
    for axis, kernel in enumerate(weight.shape[2:], 2):
        patches = patches.unfold(axis, dilation * (kernel - 1) + 1, stride)[..., ::dilation]
    axes = len(sides)  # patches are (b, c, *places, *kernel)
    patches = patches.movedim(1, 1 + axes).flatten(1, axes).unflatten(2, (groups, -1)).flatten(3)
    kernels = weight.unflatten(0, (groups, -1)).flatten(2)
    return _biased(torch.einsum("gok,bngk->bgon", kernels, patches).flatten(1, 2).unflatten(2, sides), bias)


def reference_transposed(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: int = 1, padding: int = 0, dilation: int = 1,
    groups: int = 1, extra: int = 0,
) -> Tensor:  # fmt: skip
    """The transposed convolution: each input adds its multiple of the kernel to the outputs it stands over.

    Shapes: x (b, c, h, w), weight (c, out / groups, k, l) -> (b, out, h', w'), sides by `transposed_size`. Book: D2L 14.10.

    >>> reference_transposed(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2)).flatten().tolist()
    [1.0, 2.0, 1.0]
    """
    if x.dim() != weight.dim() or x.shape[1] != weight.shape[0] or weight.shape[0] % groups:
        raise WonderlandError(
            f"A transposed convolution takes images (b, c, ...) and kernels (c, out / groups, ...), not {tuple(x.shape)} and "
            f"{tuple(weight.shape)} in {groups} groups."
        )
    read, kernels = x.unflatten(1, (groups, -1)), weight.unflatten(0, (groups, -1))
    options = {"stride": stride, "padding": padding, "dilation": dilation, "extra": extra}
    sides = [transposed_size(n, k, **options) for n, k in zip(x.shape[2:], weight.shape[2:], strict=True)]
    y = x.new_zeros(x.shape[0], groups, weight.shape[1], *(side + 2 * padding for side in sides))
    for place in itertools.product(*map(range, weight.shape[2:])):
        window = [
            slice(k * dilation, k * dilation + (n - 1) * stride + 1, stride)
            for k, n in zip(place, x.shape[2:], strict=True)
        ]
        added = torch.zeros_like(y)
        added[(..., *window)] = torch.einsum("gco,bgc...->bgo...", kernels[(..., *place)], read)
        y = y + added
    inside = [slice(padding, padding + side) for side in sides]
    return _biased(y[(..., *inside)].flatten(1, 2), bias)


def _biased(y: Tensor, bias: Tensor | None) -> Tensor:
    return y if bias is None else y + bias.view(-1, *[1] * (y.dim() - 2))


def _padded(
    x: Tensor, weight: Tensor, stride: int, padding: int | str, dilation: int, groups: int, mode: str
) -> tuple[Tensor, list[int]]:
    """The input with its border, and the sides of the output."""
    fits = x.dim() == weight.dim() and 3 <= x.dim() <= 5
    if not fits or x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise WonderlandError(
            f"A convolution takes images (b, c, h, w) and kernels (out, c / groups, k, l), not {tuple(x.shape)} and "
            f"{tuple(weight.shape)} in {groups} groups."
        )
    if mode not in MODES or (isinstance(padding, str) and padding not in ("same", "valid")):
        raise WonderlandError(
            f"Padding is a number, 'same' or 'valid', and its mode one of {', '.join(MODES)}, not {padding!r} and {mode!r}."
        )
    if padding == "same" and stride > 1:
        raise WonderlandError(f"Padding 'same' is for a stride of 1, not {stride}: give a number.")
    borders: list[int] = []  # of the last axis first, as torch takes them
    for kernel in reversed(weight.shape[2:]):
        both = dilation * (kernel - 1) if padding == "same" else 0 if isinstance(padding, str) else 2 * padding
        borders += [both // 2, both - both // 2]
    padded = F.pad(x, borders, MODES[mode])
    options = {"stride": stride, "dilation": dilation}
    sides = [output_size(n, k, **options) for n, k in zip(padded.shape[2:], weight.shape[2:], strict=True)]
    return padded, sides
