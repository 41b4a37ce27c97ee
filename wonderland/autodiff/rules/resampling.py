"""Rules of image resampling: antialiased upsampling and grid_sample in three dimensions."""

import itertools

import torch

from wonderland.autodiff.rules.table import from_program, linear

aten = torch.ops.aten

for _name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
    _forward, _backward = getattr(aten, _name), getattr(aten, f"{_name}_backward")
    linear(
        f"{_name}.default",
        self=lambda g, n, backward=_backward: backward(
            g, n.output_size, list(n.self.shape), n.align_corners, n.scales_h, n.scales_w
        ),
    )
    linear(
        f"{_name}_backward.default",
        grad_output=lambda g, n, forward=_forward: forward(g, n.output_size, n.align_corners, n.scales_h, n.scales_w),
    )


def _place(x, size, aligned, padding):
    """A coordinate in [-1, 1] as a position in pixels; padding clamps (1) or reflects (2) it into the image."""
    place = (x + 1) / 2 * (size - 1) if aligned else ((x + 1) * size - 1) / 2
    if padding == 2:
        low, high = (0, size - 1) if aligned else (-0.5, size - 0.5)
        place = _reflected(place, low, high)
    if padding in (1, 2):
        inside = (place > 0) & (place < size - 1)
        place = torch.where(inside, place, place.detach().clamp(0, size - 1))
    return place


def _reflected(place, low, high):
    span = high - low
    if span <= 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    flips = torch.floor(distance / span).detach()
    rest = distance - flips * span
    return torch.where(flips % 2 == 0, rest + low, high - rest)


def _pixels(image, corner):
    """The pixels (b, c, ...) of an image at integer positions, zeros outside."""
    sizes = image.shape[2:]
    flat = torch.zeros_like(corner[0], dtype=torch.long)
    inside = torch.ones_like(flat, dtype=torch.bool)
    for place, size in zip(corner, sizes, strict=True):
        inside = inside & (place >= 0) & (place < size)
        flat = flat * size + place.clamp(0, size - 1).long()
    index = flat.flatten(1).unsqueeze(1).expand(-1, image.shape[1], -1)
    pixels = image.flatten(2).gather(2, index).reshape(*image.shape[:2], *flat.shape[1:])
    return pixels * inside.unsqueeze(1).to(image.dtype)


def _grid_sample(n):
    """Linear interpolation between the corner pixels around each position; or the nearest pixel."""
    sizes = n.input.shape[2:]
    # The grid has the coordinate of the last axis first.
    places = [
        _place(n.grid[..., len(sizes) - 1 - axis], size, n.align_corners, n.padding_mode)
        for axis, size in enumerate(sizes)
    ]
    if n.interpolation_mode == 1:
        return _pixels(n.input, [place.detach().round() for place in places])
    floors = [place.detach().floor() for place in places]
    out = None
    for step in itertools.product((0, 1), repeat=len(sizes)):
        corner = [floor + offset for floor, offset in zip(floors, step, strict=True)]
        weight = torch.ones_like(places[0])
        for place, floor, offset in zip(places, floors, step, strict=True):
            weight = weight * (place - floor if offset else 1 - (place - floor))
        term = _pixels(n.input, corner) * weight.unsqueeze(1)
        out = term if out is None else out + term
    return out


from_program("grid_sampler_3d", _grid_sample)
