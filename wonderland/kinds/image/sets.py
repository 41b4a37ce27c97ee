"""Image sets in IDX files, and test sets of their own: joined to the training images, with their rows marked."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding
from wonderland.data.idx import image_files, is_test, read_pair
from wonderland.data.pixels import Memory
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.image.images import Images


class Joined:
    """Pixels of two stores, one after the other."""

    def __init__(self, first: Any, second: Any):
        self.first, self.second, self.shape = first, second, first.shape

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        pixels = np.empty((len(rows), *self.shape), np.uint8)
        early = rows < len(self.first)
        pixels[early] = self.first.pixels(rows[early])
        pixels[~early] = self.second.pixels(rows[~early] - len(self.first))
        return pixels

    def moments(self, rows: np.ndarray) -> np.ndarray:
        early = rows < len(self.first)
        return self.first.moments(rows[early]) + self.second.moments(rows[~early] - len(self.first))


def open_idx(path: Path, options: Any) -> Images:
    """The images of a folder with IDX files, or of one file; a part named test or t10k becomes the test rows."""
    files = image_files(path)
    train = [file for file in files if not is_test(file)] or files
    test = [file for file in files if file not in train]
    if len(train) > 1 or len(test) > 1:
        names = ", ".join(file.name for file in files)
        raise WonderlandError(f"{path} holds several sets of images: {names}. Name the file of one of them.")
    images = _read(train[0], options)
    if test:
        images = join(images, test[0])
        text = f"{test[0].name} holds the test images: {int(images.test_rows.sum()):,}."  # pyright: ignore
        images.findings.append(Finding("size", str(path), len(images), text))
    images.origin = {"kind": "image", "source": "idx", "path": str(path.absolute())}
    return images


def _read(file: Path, options: Any) -> Images:
    x, y = read_pair(file)
    return Images.from_arrays(x, y, name=file.parent.resolve().name, task=options.task, strict=options.strict)


def join(images: Images, source: Any) -> Images:
    """The images with those of a test set after them, marked in `test_rows`; these get the size and channels of the others."""
    encoder = ImageEncoder.fit(images, np.arange(min(len(images), 100)))
    test = encoder.open(source, need_target=True)
    if isinstance(test.store, Memory):
        pixels, first = encoder.encode(test).numpy(), images.store
        whole = isinstance(first, Memory)
        store = Memory(np.concatenate([first.array, pixels])) if whole else Joined(first, Memory(pixels))
        images.findings += encoder.noticed
    elif test.store.shape == images.store.shape:
        store = Joined(images.store, test.store)
    else:
        raise WonderlandError(f"The test images of {test.name} are too many to change their size in memory.")
    assert images.y is not None
    assert test.y is not None
    joined = Images(
        store,  # pyright: ignore[reportArgumentType]
        name=images.name,
        y=np.concatenate([images.y, test.y]),
        classes=images.classes,
        task=images.task,
        findings=images.findings,
        fingerprint=hashlib.sha256(f"{images.fingerprint}|test|{test.fingerprint}".encode()).hexdigest(),
        origin=images.origin,
        paths=None if images.paths is None or test.paths is None else [*images.paths, *test.paths],
        value_range=images.value_range,
    )
    joined.test_rows = np.arange(len(joined)) >= len(images)
    joined.start = images.start
    return joined
