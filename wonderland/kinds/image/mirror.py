"""Whether mirror images keep their class: asked of nearest neighbours, in whole numbers, so that the answer is always the same."""

import numpy as np
from numpy import ndarray

from wonderland.data.dataset import Dataset

REFERENCES, QUERIES, LEAST, NEIGHBOURS, SIDE = 2000, 1000, 1500, 5, 16


def mirror_test(dataset: Dataset, rows: ndarray) -> list[int] | None:
    """Held-out images, how many of them their neighbours name rightly without and with mirror images among these, and how many
    were right only without and only with them; None for fewer than 1,500 images."""
    if len(rows) < LEAST or dataset.y is None:
        return None
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), REFERENCES + QUERIES)).astype(np.int64)]
    rows = rows[np.random.Generator(np.random.Philox(0)).permutation(len(rows))]
    held = len(rows) // 3
    pixels, y = dataset.pixels(rows), dataset.y[rows]  # pyright: ignore[reportAttributeAccessIssue]
    queries, plain, mirrored = (coarse(x) for x in (pixels[:held], pixels[held:], pixels[held:, :, :, ::-1]))
    first = _neighbours(queries, plain, y[held:], NEIGHBOURS) == y[:held]
    both = np.concatenate([plain, mirrored])
    second = _neighbours(queries, both, np.concatenate([y[held:], y[held:]]), NEIGHBOURS) == y[:held]
    return [held, *(int(right.sum()) for right in (first, second, first & ~second, second & ~first))]


def keeps_class(mirror: list[int]) -> bool:
    """Whether mirror images do no harm: images lost to them do not exceed those gained by more than chance (two deviations)."""
    _, _, _, lost, gained = mirror
    return lost - gained <= 2 * (lost + gained) ** 0.5


def coarse(pixels: ndarray) -> ndarray:
    """Sums over blocks, about 16 x 16 of them, cut at the border. Shapes: (n, c, h, w) -> (n, values), whole numbers.

    >>> coarse(np.ones((1, 1, 32, 40), np.uint8)).tolist()[0][:3]
    [4.0, 4.0, 4.0]
    """
    count, channels, height, width = pixels.shape
    block = max(1, min(height, width) // SIDE)
    rows, columns = height // block, width // block
    cut = pixels[:, :, : rows * block, : columns * block].astype(np.int64)
    sums = cut.reshape(count, channels, rows, block, columns, block).sum((3, 5))
    return sums.reshape(count, -1).astype(np.float64)


def _neighbours(queries: ndarray, references: ndarray, y: ndarray, k: int) -> ndarray:
    """The class of most of the k nearest references. Whole numbers below 2^53 keep every sum exact, whatever its order."""
    distances = np.square(references).sum(1) - 2 * queries @ references.T
    near = np.argsort(distances, 1, kind="stable")[:, :k]
    votes = np.zeros((len(queries), int(y.max()) + 1), np.int64)
    for column in near.T:
        np.add.at(votes, (np.arange(len(queries)), y[column]), 1)
    return votes.argmax(1)
