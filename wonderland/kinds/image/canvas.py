"""Whole images on one canvas: scaled to fit, at its upper left corner, with class ids for each pixel where there are masks."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from wonderland.core import WonderlandError, read_bytes
from wonderland.data.decode import _open, _orientation, decode_bytes, guard_decompression
from wonderland.data.pixels import MOST_IN_MEMORY, _moments

OUTSIDE = 255  # the class of pixels that do not count
GREY = 128
LONGEST, SHORTEST_OBJECT = 256, 16


@dataclass(frozen=True)
class Fit:
    """How an image lies on the canvas: its own size, and the factor it is scaled by."""

    height: int
    width: int
    scale: float


def upright_size(path: Path) -> tuple[int, int]:
    """Height and width after the rotation that EXIF asks for; call it inside `guard_decompression`."""
    try:
        with open(path, "rb") as file:
            image = _open(file, path)
            rotated = _orientation(image) >= 5
            return (image.width, image.height) if rotated else (image.height, image.width)
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror or error}).") from error


def canvas_size(sizes: list[tuple[int, int]], asked: int | None, objects: np.ndarray | None = None) -> tuple[int, int]:
    """Height and width of the canvas: of the images if they are all alike and small, else their median shape.

    The longer side is `asked`, or at most 256 pixels, and up to 512 where the objects (sides in pixels) would become too small.
    """
    middle = np.median(np.asarray(sizes, np.float64), axis=0)
    longest = float(middle.max())
    goal = min(longest, LONGEST)
    if objects is not None and len(objects):
        goal = min(longest, 2 * LONGEST, max(goal, SHORTEST_OBJECT / float(np.median(objects)) * longest))
    goal = goal if asked is None else float(asked)
    if goal == longest and len(set(sizes)) == 1:
        return sizes[0]
    height, width = (max(8, 8 * round(side * goal / longest / 8)) for side in middle)
    return height, width


def fit_into(size: tuple[int, int], canvas: tuple[int, int]) -> Fit:
    """How an image of a size lies on a canvas (height, width)."""
    return Fit(*size, min(canvas[0] / size[0], canvas[1] / size[1]))


def placed(image: np.ndarray, canvas: tuple[int, int], *, nearest: bool = False, outside: int = GREY) -> np.ndarray:
    """A picture (h, w) or (h, w, 3) of bytes on the canvas, `outside` beside it."""
    if image.shape[:2] == canvas:
        return image
    fit = fit_into((image.shape[0], image.shape[1]), canvas)
    size = (max(1, round(fit.width * fit.scale)), max(1, round(fit.height * fit.scale)))
    way = Image.Resampling.NEAREST if nearest else Image.Resampling.BILINEAR
    small = np.asarray(Image.fromarray(image).resize((min(size[0], canvas[1]), min(size[1], canvas[0])), way))
    padded = np.full((*canvas, *image.shape[2:]), outside, np.uint8)
    padded[: small.shape[0], : small.shape[1]] = small
    return padded


def coloured(image: np.ndarray, channels: int) -> np.ndarray:
    """A picture (h, w) or (h, w, 3) as (channels, h, w)."""
    if channels == 3 and image.ndim == 2:
        return np.broadcast_to(image, (3, *image.shape))
    if channels == 1 and image.ndim == 3:
        return np.asarray(Image.fromarray(image).convert("L"))[None]
    return image[None] if image.ndim == 2 else image.transpose(2, 0, 1)


class Canvas:
    """Pixels of all images on one canvas, uint8 (n, c, h, w): in memory when they fit, else decoded when they are asked for."""

    def __init__(
        self, paths: list[Path], shape: tuple[int, int, int], fits: list[Fit], digests: list[str], sums: np.ndarray
    ):
        self.paths, self.shape, self.fits, self.digests, self.sums = paths, shape, fits, digests, sums
        self.array: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.fits)

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        """Images of these rows, uint8 (b, c, h, w)."""
        if self.array is not None:
            return self.array[rows]
        pixels = np.empty((len(rows), *self.shape), np.uint8)
        with guard_decompression():
            for place, row in enumerate(rows):
                data = read_bytes(self.paths[row], "image_bytes")
                if hashlib.sha256(data).hexdigest() != self.digests[row]:
                    raise WonderlandError(
                        f"{self.paths[row]} has changed since the data was opened. Open the data again."
                    )
                image = placed(decode_bytes(data, self.paths[row]), (self.shape[1], self.shape[2]))
                pixels[place] = coloured(image, self.shape[0])
        return pixels

    def moments(self, rows: np.ndarray) -> np.ndarray:
        """Sums of the pixels and of their squares, for each channel: (2, c)."""
        return self.sums[rows].sum(0)

    @staticmethod
    def read(paths: list[Path], canvas: tuple[int, int], channels: int | None = None) -> "Canvas":
        """Decode every image once: its size, its digest, and its pixels while memory allows."""
        room = len(paths) * 3 * canvas[0] * canvas[1] <= MOST_IN_MEMORY
        images: list[np.ndarray] = []
        fits, digests, sums, grey = [], [], np.zeros((len(paths), 2, 3)), True
        with guard_decompression():
            for row, path in enumerate(paths):
                data = read_bytes(path, "image_bytes")
                image = decode_bytes(data, path)
                digests.append(hashlib.sha256(data).hexdigest())
                fits.append(fit_into((image.shape[0], image.shape[1]), canvas))
                image = placed(image, canvas)
                grey &= image.ndim == 2
                sums[row] = _moments(coloured(image, 3)[None])
                if room:
                    images.append(image)
        shape = (channels or (1 if grey else 3), *canvas)
        result = Canvas(paths, shape, fits, digests, sums[:, :, :1] if shape[0] == 1 else sums)
        if shape[0] == 1 and not grey:
            result.sums = sums.mean(2, keepdims=True)
        if room:
            result.array = np.empty((len(paths), *shape), np.uint8)
            for row, image in enumerate(images):
                result.array[row] = coloured(image, shape[0])
        return result

    @staticmethod
    def of_pictures(pictures: list[np.ndarray], canvas: tuple[int, int], channels: int) -> "Canvas":
        """Pictures in memory, uint8 (h, w) or (h, w, 3), on the canvas."""
        fits = [fit_into((image.shape[0], image.shape[1]), canvas) for image in pictures]
        result = Canvas([], (channels, *canvas), fits, [], np.zeros((len(pictures), 2, channels)))
        result.array = np.empty((len(pictures), channels, *canvas), np.uint8)
        for row, image in enumerate(pictures):
            result.array[row] = coloured(placed(image, canvas), channels)
            result.sums[row] = _moments(result.array[row][None])
        return result
