"""Pillow's bilinear resize onto a canvas as a torch program of free height and width, and the way back to the size of a picture."""

import torch
from torch import Tensor

WEIGHT = 2.0**22  # a weight of 1, as a whole number


def placed_tensor(pictures: Tensor, height: int, width: int, *, outside: int) -> Tensor:
    """Pictures scaled to fit, at the upper left corner of a canvas, as `kinds.image.canvas.placed` does: whole numbers as double.

    Shapes: uint8 (n, h, w, c) -> (n, c, height, width).

    >>> placed_tensor(torch.full((1, 4, 2, 3), 7, dtype=torch.uint8), 2, 2, outside=9)[0, 0]
    tensor([[7., 9.],
            [7., 9.]], dtype=torch.float64)
    """
    x = pictures.permute(0, 3, 1, 2).double()
    high, wide = sizes_on_canvas(pictures, height, width)
    x = _rounded(x @ _weights(x.shape[3], width, wide).t())
    x = _rounded(_weights(x.shape[2], height, high) @ x)
    inside = (torch.arange(height, device=x.device) < high)[:, None] & (torch.arange(width, device=x.device) < wide)
    return torch.where(inside, x, torch.full_like(x, float(outside)))


def sizes_on_canvas(pictures: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """The height and width that pictures (n, h, w, c) get on a canvas, in numbers without axes."""
    tall, wide = (
        torch.ones(pictures.shape[axis], dtype=torch.float64, device=pictures.device).sum() for axis in (1, 2)
    )
    scale = torch.minimum(height / tall, width / wide)
    return (
        (tall * scale).round().clamp(min=1, max=height),
        (wide * scale).round().clamp(min=1, max=width),
    )


def spread_to(maps: Tensor, height: int, width: int, high: Tensor, wide: Tensor) -> Tensor:
    """The upper left piece of maps (n, c, H, W), `high` by `wide`, in the size of a picture, by linear interpolation: (n, c, height, width)."""
    return _between(height, maps.shape[2], high) @ maps.double() @ _between(width, maps.shape[3], wide).t()


def _between(size: int, length: int, used: Tensor) -> Tensor:
    """What each of the first `used` of `length` pixels adds to each of `size` pixels (size, length)."""
    place = torch.arange(size, dtype=torch.float64, device=used.device)
    count = torch.ones_like(place).sum()
    source = ((place + 0.5) * (used / count) - 0.5).clamp(min=0)
    low = torch.minimum(source.floor(), used - 1)
    share, high = source - low, torch.minimum(low + 1, used - 1)
    pixel = torch.arange(length, dtype=torch.float64, device=used.device)
    zero = torch.zeros_like(share)[:, None]
    return torch.where(pixel == low[:, None], 1 - share[:, None], zero) + torch.where(
        pixel == high[:, None], share[:, None], zero
    )


def _weights(length: int, size: int, used: Tensor) -> Tensor:
    """Pillow's triangular filter as whole numbers, from `length` pixels to the first `used` of `size` (size, length).

    A picture that has that size already is left as it is.
    """
    place = torch.arange(length, dtype=torch.float64, device=used.device)
    whole = torch.ones_like(place).sum()
    scale = whole / used
    stretch = scale.clamp(min=1)
    centre = (torch.arange(size, dtype=torch.float64, device=used.device) + 0.5) * scale
    begin = (centre - stretch + 0.5).floor().clamp(min=0)[:, None]
    end = torch.minimum((centre + stretch + 0.5).floor(), whole)[:, None]
    value = (1 - ((place - centre[:, None] + 0.5) * (1 / stretch)).abs()).clamp(min=0)
    value = torch.where((place >= begin) & (place < end), value, torch.zeros_like(value))
    share = value / value.sum(1, keepdim=True).clamp(min=1e-30) * WEIGHT
    return torch.floor(share + 0.5)


def _rounded(sums: Tensor) -> Tensor:
    return torch.clamp(torch.floor((sums + WEIGHT / 2) / WEIGHT), min=0, max=255)
