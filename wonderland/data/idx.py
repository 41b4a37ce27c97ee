"""IDX files: arrays of bytes with their sizes in front, the format of MNIST and its kin, plain or gzipped."""

import gzip
import re
import zlib
from pathlib import Path

import numpy as np

from wonderland.core import WonderlandError

MOST_BYTES = 1 << 32
_NAME = re.compile(r"(images)([-.]?idx[34])?[-.]?(ubyte|idx[34]?)?(\.gz)?$", re.I)
TEST_WORDS = ("t10k", "test")


def is_idx(path: Path) -> bool:
    """Whether a file is an IDX file of images, by its name and first bytes.

    >>> is_idx(Path("train-images.txt"))
    False
    """
    if not _NAME.search(path.name) or not path.is_file():
        return False
    try:
        with gzip.open(path) if path.suffix.casefold() == ".gz" else path.open("rb") as file:
            start = file.read(4)
    except (OSError, EOFError, zlib.error):
        return False
    return start in (b"\0\0\x08\x03", b"\0\0\x08\x04")


def image_files(path: Path) -> list[Path]:
    """The IDX files of images in a folder, in order of their names; for a file itself, that one."""
    if path.is_dir():
        return [file for file in sorted(path.iterdir()) if is_idx(file)]
    return [path] if is_idx(path) else []


def is_test(path: Path) -> bool:
    """Whether a file holds a test part, by its name."""
    return any(word in path.name.casefold() for word in TEST_WORDS)


def file_of_test_images(path: Path) -> Path:
    """The file of test images in a folder with IDX files, or the first where none is named so."""
    files = image_files(path)
    return next((file for file in files if is_test(file)), files[0])


def labels_beside(images: Path) -> Path | None:
    """The file of labels that belongs to a file of images; None where there is none."""
    name = re.sub("images", "labels", images.name, flags=re.I)
    stem = re.sub(r"idx[34]", "idx1", name, flags=re.I)
    bare = re.sub(r"\.gz$", "", stem, flags=re.I)
    return next(
        (images.with_name(each) for each in (stem, bare, bare + ".gz") if images.with_name(each).is_file()), None
    )


def read_idx(path: Path, *, most: int = MOST_BYTES) -> np.ndarray:
    """The array in an IDX file of bytes: (n,) labels, (n, h, w) or (n, h, w, c) images."""
    try:
        with gzip.open(path) if path.suffix.casefold() == ".gz" else path.open("rb") as file:
            start = file.read(4)
            if len(start) < 4 or start[:3] != b"\0\0\x08" or not 1 <= start[3] <= 4:
                raise WonderlandError(f"{path} is not an IDX file of bytes: its first four bytes are {start.hex(' ')}.")
            sizes = np.frombuffer(file.read(4 * start[3]), ">u4").astype(np.int64)
            total = int(np.prod([int(size) for size in sizes], dtype=object)) if len(sizes) else 0
            if len(sizes) < start[3] or total < 1 or total > most:
                shape = " x ".join(map(str, sizes.tolist()))
                raise WonderlandError(f"{path} says it holds {shape} bytes, which is empty or too much: it is damaged.")
            content = file.read(total + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise WonderlandError(f"{path} cannot be read: {error}") from error
    if len(content) != total:
        more = "more than" if len(content) > total else f"only {len(content):,} of"
        raise WonderlandError(f"{path} holds {more} the {total:,} bytes it announces: it is damaged.")
    return np.frombuffer(content, np.uint8).reshape(sizes.tolist())


def read_pair(images: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Images and their labels, if there are any beside them."""
    x, beside = read_idx(images), labels_beside(images)
    y = None if beside is None else read_idx(beside)
    if y is not None and y.shape != (len(x),):
        raise WonderlandError(f"{images} holds {len(x):,} images, and {beside} labels of the shape {y.shape}.")
    return x, y
