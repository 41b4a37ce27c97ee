"""Whitening of patches: a first convolution with fixed filters, after which neighbouring pixels are no longer correlated."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked


@part
class PatchWhitening(Checked, nn.Module):
    r"""A convolution whose filters are the principal directions of patches, each scaled to unit variance, and their negatives.

    .. math::
        C = \mathbb{E}[p p^\top] = V \Lambda V^\top, \qquad
        W = (\Lambda + \epsilon I)^{-1/2} V^\top, \qquad y = [W; -W] * x + b

    p are patches of `size` x `size` standardised pixels. The filters stay as they are, the bias b learns. `directions` holds the
    rows of W (`whitening_directions` computes them from images); without them each filter copies one pixel of the patch.

    Shapes: x (b, channels, h, w) -> (b, 2 channels size^2, h - size + 1, w - size + 1).
    Papers: Coates and Ng, 2012; Jordan, 2024 (airbench).

    >>> PatchWhitening(3)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 24, 7, 7])
    """

    filters: Tensor

    def __init__(self, channels: int, *, size: int = 2, directions: list[list[float | int]] | None = None):
        super().__init__()
        width = channels * size * size
        if channels < 1 or size < 1 or width > 1024:
            raise WonderlandError(
                f"PatchWhitening cannot be built with channels={channels}, size={size}: both are at least 1, and a patch has "
                "at most 1,024 values."
            )
        rows = torch.eye(width) if directions is None else torch.tensor(directions, dtype=torch.float32)
        if rows.shape != (width, width):
            raise WonderlandError(
                f"PatchWhitening needs {width} directions of {width} numbers for patches of {channels} x {size} x {size}, "
                f"not {tuple(rows.shape)}."
            )
        rows = rows.view(width, channels, size, size)
        self.register_buffer("filters", torch.cat([rows, -rows]))
        self.bias = nn.Parameter(torch.zeros(2 * width))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.filters, self.bias)


def whitening_directions(images: ndarray, size: int = 2, eps: float = 5e-4) -> ndarray:
    """The rows of W for `PatchWhitening`, from standardised images.

    Shapes: images (n, c, h, w) -> (c size^2, c size^2).

    >>> images = np.random.default_rng(0).normal(size=(50, 1, 8, 8))
    >>> rows = whitening_directions(images, eps=0.0)
    >>> windows = np.lib.stride_tricks.sliding_window_view(images, (2, 2), axis=(2, 3)).reshape(-1, 4)
    >>> bool(np.allclose(np.mean(np.square(windows @ rows.T), 0), 1))
    True
    """
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(images, np.float64), (size, size), axis=(2, 3))
    patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, images.shape[1] * size * size)
    values, vectors = np.linalg.eigh(patches.T @ patches / len(patches))
    signs = np.sign(
        vectors[np.abs(vectors).argmax(0), np.arange(len(values))]
    )  # eigenvectors have no sign of their own
    order = np.argsort(-values)
    scales = 1 / np.sqrt(np.maximum(values, 0) + max(eps, math.ulp(1.0)))
    return (vectors * signs * scales).T[order]
