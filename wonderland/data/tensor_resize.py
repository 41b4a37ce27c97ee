"""Pillow's bicubic resize as a torch program of free height and width, equal to it in every pixel, for exported models.

All sums are of whole numbers in double precision, so that neither their order nor the library changes a pixel.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

SUPPORT, CUBIC = 2.0, -0.5
WEIGHT = 2.0**22  # a weight of 1, as a whole number
GAP = 3.0  # blocks of pixels are averaged first where a side shrinks by at least twice this factor


def fit_tensor(pixels: Tensor, height: int, width: int) -> Tensor:
    """The largest centred piece with the shape height : width, resized; what `wonderland.data.decode.conform` does before channels.

    Shapes: uint8 (n, h, w, c) -> double with whole numbers (n, c, height, width).

    >>> fit_tensor(torch.full((1, 9, 5, 3), 7, dtype=torch.uint8), 2, 2).unique()
    tensor([7.], dtype=torch.float64)
    """
    x = pixels.permute(0, 3, 1, 2).double()
    tall, wide = (_side(x, axis) for axis in (2, 3))
    part = torch.minimum(wide / width, tall / height)
    rows, columns = _Axis.of(tall, height, part), _Axis.of(wide, width, part)
    reduced = torch.maximum(rows.factor, columns.factor) > 1
    rows, columns = rows.cut(reduced), columns.cut(reduced)
    x = _block_means(x, rows, columns)
    x = _rounded(x @ columns.weights(x.shape[3]).t())
    return _rounded(rows.weights(x.shape[2]) @ x)


def grey_tensor(pixels: Tensor) -> Tensor:
    """Colour to grey, as Pillow does: whole numbers (n, 3, h, w) -> (n, 1, h, w)."""
    share = pixels.new_tensor([19595.0, 38470.0, 7471.0]).reshape(1, 3, 1, 1)
    return torch.floor(((pixels * share).sum(1, keepdim=True) + 32768) / 65536)


@dataclass(frozen=True)
class _Axis:
    """One axis of a picture, in numbers without axes: its length, the size it gets, the piece that is read, the factor of blocks,
    and the first and last pixel of blocks."""

    length: Tensor
    size: int
    low: Tensor
    high: Tensor
    factor: Tensor
    first: Tensor
    last: Tensor

    @staticmethod
    def of(length: Tensor, size: int, part: Tensor) -> "_Axis":
        """The centred piece of `size` parts."""
        start = (length - part * size) / 2
        low, high = torch.clamp(start, min=0), torch.minimum(start + part * size, length)
        factor = torch.clamp(torch.floor((high - low) / size / GAP), min=1)
        return _Axis(length, size, low, high, factor, length * 0, length)

    def cut(self, reduced: Tensor) -> "_Axis":
        """With what the filter reaches alone, where blocks are averaged along one of the axes."""
        reach = (SUPPORT - 0.5) * ((self.high - self.low) / self.size)
        first = torch.where(reduced, torch.clamp(torch.floor(self.low - reach), min=0), self.first)
        last = torch.where(reduced, torch.minimum(torch.ceil(self.high + reach), self.length), self.last)
        return _Axis(self.length, self.size, self.low, self.high, self.factor, first, last)

    def blocks(self, length: int) -> tuple[Tensor, Tensor]:
        """First pixel and number of pixels of each block, of as many as there are pixels; those past the end are empty."""
        place = torch.arange(length, dtype=torch.float64, device=self.low.device)
        starts = torch.minimum(self.first + place * self.factor, self.last)
        ends = torch.minimum(starts + self.factor, self.last)
        return starts, ends - starts

    def weights(self, length: int) -> Tensor:
        """What each block adds to each pixel, as whole numbers: (size, length)."""
        low, high = (((edge - self.first) / self.factor).float() for edge in (self.low, self.high))
        count = torch.ceil((self.last - self.first) / self.factor)
        scale = (high - low).double() / self.size
        stretch = torch.clamp(scale, min=1)
        place = torch.arange(length, dtype=torch.float64, device=low.device)
        centre = low.double() + (torch.arange(self.size, dtype=torch.float64, device=low.device) + 0.5) * scale
        begin = torch.clamp(torch.floor(centre - SUPPORT * stretch + 0.5), min=0)[:, None]
        end = torch.minimum(torch.floor(centre + SUPPORT * stretch + 0.5), count)[:, None]
        value = _cubic((place - centre[:, None] + 0.5) * (1 / stretch))
        value = torch.where((place >= begin) & (place < end), value, torch.zeros_like(value))
        share = value / value.sum(1, keepdim=True) * WEIGHT
        return torch.where(share < 0, torch.ceil(share - 0.5), torch.floor(share + 0.5))


def _side(x: Tensor, axis: int) -> Tensor:
    """The length of an axis as a number without axes, in programs of free length too."""
    return torch.ones(x.shape[axis], dtype=torch.float64, device=x.device).sum()


def _cubic(x: Tensor) -> Tensor:
    x = x.abs()
    near = ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * CUBIC
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def _rounded(sums: Tensor) -> Tensor:
    """Sums of weighted pixels as bytes."""
    return torch.clamp(torch.floor((sums + WEIGHT / 2) / WEIGHT), min=0, max=255)


def _block_means(x: Tensor, rows: _Axis, columns: _Axis) -> Tensor:
    """The rounded mean of each block of pixels, by sums along both axes."""
    starts, wide = columns.blocks(x.shape[3])
    x = _between(x, starts, wide)
    starts, tall = rows.blocks(x.shape[2])
    x = _between(x.transpose(2, 3), starts, tall).transpose(2, 3)
    area = tall[:, None] * wide
    factor = torch.floor(torch.full_like(area, 2.0**32).float() / (torch.clamp(area, min=1) * 256).float()).double()
    return torch.floor((x + torch.floor(area / 2)) * factor / 2.0**24)


def _between(x: Tensor, starts: Tensor, count: Tensor) -> Tensor:
    """Sums of neighbours along the last axis."""
    sums = torch.cat([torch.zeros_like(x[..., :1]), x.cumsum(3)], 3)
    return sums.index_select(3, (starts + count).long()) - sums.index_select(3, starts.long())
