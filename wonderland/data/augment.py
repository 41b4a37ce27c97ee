"""Augmentation: random shifts, rotations, scalings, flips and cutout, with random numbers of each example's own."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import Spec, WonderlandError, nearest, part

_MAXIMUM = {"shift": 0.5, "rotate": 180.0, "scale": 0.9, "flip": 1.0, "cutout": 0.9}


@part
@dataclass(frozen=True)
class Augment:
    """Small random changes that keep the class of an image.

    `shift` is the largest move as a part of the size, `rotate` the largest angle in degrees, `scale` the largest relative
    change of size, `flip` the probability of a mirror image, `cutout` the side of a square left blank as a part of the size. All
    are computed from `numbers` in [0, 1), `draws` for each example (see `wonderland.core.uniform`), and nothing else: the result
    for an example is the same, to the bit, whatever else is in its batch.

    Shapes: x (b, c, h, w) uint8 or float in 0..255, numbers (b, draws) -> (b, c, h, w) float32.

    >>> from wonderland.core import uniform
    >>> augment = Augment(shift=0.1, rotate=10.0)
    >>> x = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
    >>> augment(x, uniform(0, 0, np.arange(2), augment.draws)).shape
    torch.Size([2, 1, 8, 8])
    """

    shift: float | int = 0.1
    rotate: float | int = 10.0
    scale: float | int = 0.1
    flip: float | int = 0.0
    cutout: float | int = 0.0

    draws = 7

    def __post_init__(self):
        for name in _MAXIMUM:
            _check(name, getattr(self, name))

    @classmethod
    def for_images(cls, channels: int, height: int, width: int) -> "Augment":
        """A mild default. Photographs may be mirrored; digits, letters and scans (grey) may not."""
        return cls(flip=0.5 if channels == 3 and min(height, width) >= 20 else 0.0)

    def as_spec(self) -> Spec:
        """The spec that a recipe stores."""
        return Spec("data.Augment", asdict(self))

    def to_json(self) -> dict[str, float | int]:
        """As plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> "Augment":
        """Read what `to_json` gave; unknown names and values out of bounds are refused."""
        if not isinstance(value, dict):
            raise WonderlandError("An augmentation is described by names and numbers.")
        for name, number in value.items():
            if name not in _MAXIMUM:
                raise WonderlandError(f"Augment has no argument {str(name)[:80]!r}.{nearest(str(name)[:80], _MAXIMUM)}")
            _check(name, number)
        return cls(**value)

    def __call__(self, x: Tensor, numbers: np.ndarray | Tensor) -> Tensor:
        numbers = np.asarray(numbers, np.float64)
        assert numbers.shape == (len(x), self.draws), f"{numbers.shape} numbers for {len(x)} images"
        x = x.to(torch.float32)
        if self.shift or self.rotate or self.scale or self.flip:
            grid = torch.from_numpy(_grid(self.matrices(numbers), x.shape[2], x.shape[3]))
            x = F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
        if self.cutout:
            x = _cut_out(x, torch.from_numpy(numbers[:, 5:7]), self.cutout)
        return x

    def matrices(self, numbers: np.ndarray) -> np.ndarray:
        """Where each output pixel is read from, in coordinates -1..1: (2, 3, b)."""
        rotation, size, right, down = (2 * numbers[:, :4] - 1).T
        angle = rotation * math.radians(self.rotate)
        size = np.exp(size * math.log1p(self.scale))
        mirror = np.where(numbers[:, 4] < self.flip, -1.0, 1.0)
        cos, sin = np.cos(angle) * size, np.sin(angle) * size
        return np.array([[cos * mirror, -sin, 2 * self.shift * right], [sin * mirror, cos, 2 * self.shift * down]])


def _check(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAXIMUM[name]:
        raise WonderlandError(f"Augment's {name} must be a number from 0 to {_MAXIMUM[name]:g}, not {value!r}.")


def _grid(matrices: np.ndarray, height: int, width: int) -> np.ndarray:
    """The sampling grid (b, h, w, 2) of affine maps, as sums of a row and a column: the rounding of a matrix product would
    depend on the batch size.

    The maps are in units of pixels, so that a rotation stays a rotation when the image is not square.
    """
    ys = (np.arange(height) * 2 + 1) / height - 1
    xs = (np.arange(width) * 2 + 1) / width - 1
    stretch = np.array([[1, height / width, 1], [width / height, 1, 1]])
    by_x, by_y, move = (matrices * stretch[:, :, None]).transpose(1, 0, 2)[..., None]
    rows = (by_x * xs + move).astype(np.float32)
    columns = (by_y * ys).astype(np.float32)
    grid = np.empty((matrices.shape[2], height, width, 2), np.float32)
    for axis in range(2):
        np.add(rows[axis][:, None, :], columns[axis][:, :, None], out=grid[..., axis])
    return grid


def _cut_out(x: Tensor, numbers: Tensor, part: float) -> Tensor:
    """Fill one square of each image with the image's own mean."""
    height, width = x.shape[2:]
    tall, wide = max(1, round(part * height)), max(1, round(part * width))
    top = (numbers[:, 0] * (height - tall + 1)).floor().view(-1, 1, 1, 1)
    left = (numbers[:, 1] * (width - wide + 1)).floor().view(-1, 1, 1, 1)
    rows, columns = torch.arange(height).view(1, 1, -1, 1), torch.arange(width).view(1, 1, 1, -1)
    square = (rows >= top) & (rows < top + tall) & (columns >= left) & (columns < left + wide)
    return torch.where(square, x.mean((2, 3), keepdim=True), x)
