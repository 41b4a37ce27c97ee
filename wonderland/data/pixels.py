"""Storage of pixels: in memory when they fit, else on disk and decoded on demand."""

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, read_bytes
from wonderland.data.decode import conform, decode_bytes, guard_decompression, look

MOST_IN_MEMORY = 1 << 30
DEFAULT_SIDE = 64
FEW, SIDE_OF_FEW = 5000, 96  # so many large images keep more pixels: as many as a square of this side has
WIDEST, SAME_SHAPE = 2.0, 0.15  # ratio of the sides; how far its logarithm may differ
# Measured on 2,000 JPEGs: Pillow releases the GIL, so threads are faster than worker processes, which have to import torch first.
THREADS_FROM = 32


class Memory:
    """Pixels in memory: uint8 (n, c, h, w)."""

    def __init__(self, array: np.ndarray):
        self.array, self.shape = array, array.shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        return self.array[rows]

    def moments(self, rows: np.ndarray) -> np.ndarray:
        return sum(
            (_moments(self.array[rows[i : i + 4096]]) for i in range(0, len(rows), 4096)), np.zeros((2, self.shape[0]))
        )


class Files:
    """Pixels on disk, decoded on demand; a file that has changed since it was opened is refused."""

    def __init__(
        self, paths: list[Path], digests: list[str], sums: np.ndarray, shape: tuple[int, int, int], limit: int | None
    ):
        self.paths, self.digests, self.sums, self.shape, self.limit = paths, digests, sums, shape, limit

    def __len__(self) -> int:
        return len(self.paths)

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        batch = np.empty((len(rows), *self.shape), np.uint8)
        with guard_decompression():
            for place, row in enumerate(rows):
                data = read_bytes(self.paths[row], self.limit or "image_bytes")
                if hashlib.sha256(data).hexdigest() != self.digests[row]:
                    raise WonderlandError(
                        f"{self.paths[row]} has changed since the data was opened. Open the data again."
                    )
                batch[place] = conform(decode_bytes(data, self.paths[row], self.shape[1:]), *self.shape)
        return batch

    def moments(self, rows: np.ndarray) -> np.ndarray:
        return self.sums[rows].sum(0)


def read_files(
    paths: list[Path], size: tuple[int, int] | None, limit: int | None, workers: int | None, channels: int | None = None
) -> tuple[Memory | Files, list[tuple[int, int]], list[str], list[str]]:
    """One pass over the files: their pixels in one size, the size that each had, its SHA-256, and what decoding changed."""
    with guard_decompression():
        looked = _for_each_file(look, paths, workers)
        shapes, notes = [(tall, wide) for tall, wide, _ in looked], [note for _, _, note in looked]
        height, width = size or _common_size(shapes)
        fits = len(paths) * 3 * height * width <= MOST_IN_MEMORY
        # When pixels stay on disk, their sums are all that normalisation needs.
        pixels = np.empty((len(paths), 3, height, width), np.uint8) if fits else None
        sums = np.zeros((len(paths), 2, 3))
        grey = np.zeros(len(paths), bool)

        def load(row: int) -> str:
            data = read_bytes(paths[row], limit or "image_bytes")
            image = decode_bytes(data, paths[row], (height, width))
            coloured = conform(image, 3, height, width)
            grey[row] = image.ndim == 2
            sums[row] = _moments(coloured[None])
            if pixels is not None:
                pixels[row] = coloured
            return hashlib.sha256(data).hexdigest()

        digests = _for_each_file(load, range(len(paths)), workers)
    shape = (channels or (1 if grey.all() else 3), height, width)
    if pixels is not None:
        return Memory(_in_channels(pixels, grey, shape)), shapes, digests, notes
    sums = sums[:, :, : shape[0]] if shape[0] == 3 or grey.all() else sums.mean(2, keepdims=True)
    return Files(paths, digests, sums, shape, limit), shapes, digests, notes


def _in_channels(pixels: np.ndarray, grey: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    if shape[0] == 3:
        return pixels
    if grey.all():
        return np.ascontiguousarray(pixels[:, :1])
    return np.stack([conform(picture(image), *shape) for image in pixels])


def _for_each_file(function: Callable[[Any], Any], items: Sequence[Any], workers: int | None) -> list[Any]:
    """The function applied to every item, in order; the first error is raised, and says how many more there are."""

    def result_or_error(item):
        try:
            return function(item)
        except WonderlandError as error:
            return error

    if len(items) < THREADS_FROM or workers == 1:
        results = [result_or_error(item) for item in items]
    else:
        with ThreadPoolExecutor(workers or min(8, 2 * (os.cpu_count() or 1))) as pool:
            results = list(pool.map(result_or_error, items))
    faults = [result for result in results if isinstance(result, WonderlandError)]
    if len(faults) > 1:
        raise WonderlandError(f"{faults[0]} And {len(faults) - 1} more images cannot be read.") from faults[0]
    if faults:
        raise faults[0]
    return results


def _common_size(shapes: list[tuple[int, int]]) -> tuple[int, int]:
    """The median short side, to a multiple of 8, from 8 to 64.

    Larger images keep their shape where most have about the same, from 1 : 2 to 2 : 1, and as many pixels as a square of side 96 has,
    or of 64 where there are more than 5,000 of them.

    >>> _common_size([(30, 50)] * 9), _common_size([(200, 300)] * 9), _common_size([(200, 300), (300, 200)])
    ((32, 32), (80, 120), (96, 96))
    """
    middle = float(np.median([min(shape) for shape in shapes]))
    if middle <= DEFAULT_SIDE:
        side = max(8 * round(middle / 8), 8)
        return side, side
    side = min(middle, SIDE_OF_FEW if len(shapes) <= FEW else DEFAULT_SIDE)
    ratios = np.array([height / width for height, width in shapes])
    ratio = float(np.median(ratios))
    same = np.mean(np.abs(np.log(ratios / ratio)) < SAME_SHAPE) >= 0.75
    ratio = float(np.clip(ratio, 1 / WIDEST, WIDEST)) if same else 1.0
    return 8 * round(side * ratio**0.5 / 8), 8 * round(side / ratio**0.5 / 8)


def _moments(batch: np.ndarray) -> np.ndarray:
    """Sums of the pixels and of their squares, for each channel: (2, c). Whole numbers, hence exact."""
    wide = batch.astype(np.uint64)
    return np.stack((wide.sum((0, 2, 3)), (wide * wide).sum((0, 2, 3)))).astype(np.float64)


def mean_and_std(moments: np.ndarray, count: int) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of pixels / 255; a constant channel gets the deviation of one grey level."""
    mean = moments[0] / count
    variance = np.maximum(moments[1] / count - mean**2, 0)
    return (mean / 255).tolist(), (np.maximum(np.sqrt(variance), 1) / 255).tolist()


def picture(image: np.ndarray) -> np.ndarray:
    """From (c, h, w) to (h, w) when grey, else (h, w, c)."""
    return np.ascontiguousarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0))
