"""Crops and mirror images of small pictures, on bytes: one gather for a batch."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import Spec, WonderlandError, part, uniform

FLIPS = ("none", "random", "alternating")


@part
@dataclass(frozen=True)
class CropAugment:
    """Each image moved by up to `pixels` in both directions, its border reflected, and perhaps mirrored.

    `flip` is "none", "random" (each image half of the time) or "alternating": half of the images are mirrored in even epochs
    and the other half in odd ones, so two epochs show each image both ways. `cutout` is the side of a square set to the mean
    of the image. Pixels keep their type, and what becomes of an image depends on its own numbers only.

    Shapes: x (b, c, h, w), numbers (b, draws) -> (b, c, h, w). Paper: Jordan, 2024 (airbench).

    >>> augment = CropAugment(pixels=1, flip="alternating")
    >>> x = torch.arange(16, dtype=torch.uint8).view(1, 1, 4, 4)
    >>> even, odd = (augment(x, augment.numbers(0, epoch, np.array([0]))) for epoch in (0, 1))
    >>> even.shape, even.dtype
    (torch.Size([1, 1, 4, 4]), torch.uint8)
    """

    pixels: int = 2
    flip: str = "none"
    cutout: int = 0

    draws = 5

    def __post_init__(self):
        if self.flip not in FLIPS:
            raise WonderlandError(f"CropAugment's flip is one of {', '.join(FLIPS)}, not {self.flip!r}.")
        for name, most in (("pixels", 64), ("cutout", 256)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
                raise WonderlandError(f"CropAugment's {name} is a whole number from 0 to {most}, not {value!r}.")

    def as_spec(self) -> Spec:
        """The spec that a recipe stores."""
        return Spec("data.CropAugment", asdict(self))

    def numbers(self, seed: int, epoch: int, index: np.ndarray) -> np.ndarray:
        """The random numbers of examples in an epoch: (b, draws); alternating flips depend on the epoch by its parity."""
        numbers = uniform(seed, epoch, index, self.draws)
        if self.flip == "alternating":
            numbers[:, 2] = (uniform(seed, 0, index, self.draws)[:, 2] + 0.5 * (epoch % 2)) % 1.0
        return numbers

    def __call__(self, x: Tensor, numbers: Any) -> Tensor:
        numbers = np.asarray(numbers, np.float64)
        assert numbers.shape == (len(x), self.draws), f"{numbers.shape} numbers for {len(x)} images"
        count, _, height, width = x.shape
        reach = min(self.pixels, height - 1, width - 1)
        rows = _reflected(np.floor(numbers[:, :1] * (2 * reach + 1)).astype(np.int64) - reach, height)
        columns = _reflected(np.floor(numbers[:, 1:2] * (2 * reach + 1)).astype(np.int64) - reach, width)
        if self.flip != "none":
            mirrored = numbers[:, 2] < 0.5
            columns[mirrored] = columns[mirrored, ::-1]
        index = torch.from_numpy(rows[:, :, None] * width + columns[:, None, :]).view(count, 1, -1)
        moved = x.flatten(2).gather(2, index.expand(-1, x.shape[1], -1)).view_as(x)
        return _cut_out(moved, numbers[:, 3:5], self.cutout) if self.cutout else moved


def _reflected(shift: np.ndarray, size: int) -> np.ndarray:
    """Which row is read at each place of an image that is moved, with reflection at the border: (b, 1) -> (b, size)."""
    place = np.abs(np.arange(size) + shift)
    return np.where(place < size, place, 2 * (size - 1) - place)


def _cut_out(x: Tensor, numbers: np.ndarray, side: int) -> Tensor:
    """Fill one square of each image with the image's own mean; its centre lies anywhere in the image."""
    height, width = x.shape[2:]
    top = torch.from_numpy(np.floor(numbers[:, 0] * height).astype(np.int64) - side // 2).view(-1, 1, 1, 1)
    left = torch.from_numpy(np.floor(numbers[:, 1] * width).astype(np.int64) - side // 2).view(-1, 1, 1, 1)
    rows, columns = torch.arange(height).view(1, 1, -1, 1), torch.arange(width).view(1, 1, 1, -1)
    square = (rows >= top) & (rows < top + side) & (columns >= left) & (columns < left + side)
    return torch.where(square, x.float().mean((2, 3), keepdim=True).to(x.dtype), x)
