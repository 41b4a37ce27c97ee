"""Boxes and masks that move with their images, all images of a batch at once.

`matrices` (2, 3, b) say where each output pixel is read from, in coordinates -1..1 (see `Augment.matrices`).
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.data.augment import _grid


def in_pixels(matrices: np.ndarray, height: int, width: int) -> Tensor:
    """Maps from pixels of the output to those of the source: (b, 2, 3), float64."""
    stretch = np.array([[1, height / width, 1], [width / height, 1, 1]])
    maps = np.moveaxis(matrices * stretch[:, :, None], 2, 0)
    half = np.array([width / 2, height / 2])
    linear = maps[:, :, :2] * half[:, None] / half[None, :]
    shift = (maps[:, :, 2] + 1 - maps[:, :, :2].sum(2)) * half
    return torch.from_numpy(np.concatenate([linear, shift[:, :, None]], 2))


def move_boxes(boxes: Tensor, places: Tensor, height: int, width: int, *, least: float = 0.1) -> tuple[Tensor, Tensor]:
    """Boxes (b, m, 4) of the sources as they lie in the outputs, and which of them (b, m) keep that share of their area.

    `places` (b, 2, 3) is what `in_pixels` gives. A rotated box becomes the upright box around its corners; what lies beyond the
    border is cut.

    >>> flip = in_pixels(np.array([[[-1.0], [0], [0]], [[0], [1.0], [0]]]), 4, 8)
    >>> move_boxes(torch.tensor([[[0.0, 0.0, 2.0, 4.0]]]), flip, 4, 8)[0].tolist()
    [[[6.0, 0.0, 8.0, 4.0]]]
    """
    back = torch.linalg.inv(places[:, :, :2])
    left, top, right, bottom = boxes.double().unbind(2)
    corners = torch.stack([left, top, right, top, right, bottom, left, bottom], 2).unflatten(2, (4, 2))
    points = (corners - places[:, None, None, :, 2]) @ back.transpose(1, 2)[:, None]
    bounds = torch.cat([points.amin(2), points.amax(2)], 2)
    whole = (bounds[..., 2:] - bounds[..., :2]).prod(2)
    bounds = torch.minimum(bounds.clamp_min(0), bounds.new_tensor([width, height, width, height]))
    kept = (bounds[..., 2:] - bounds[..., :2]).clamp_min(0).prod(2)
    return bounds.to(boxes.dtype), kept >= least * whole.clamp_min(1e-12)


def move_masks(masks: Tensor, matrices: np.ndarray, *, outside: int = 255) -> Tensor:
    """Masks (b, h, w) of whole numbers moved as their images are; what lies outside of the image is `outside`."""
    grid = torch.from_numpy(_grid(matrices, masks.shape[1], masks.shape[2]))
    moved = F.grid_sample((masks.float() + 1)[:, None], grid, mode="nearest", padding_mode="zeros", align_corners=False)
    moved = moved[:, 0].round().long() - 1
    return torch.where(moved < 0, outside, moved).to(masks.dtype)
