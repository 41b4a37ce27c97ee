"""Compressed files, unpacked as a stream that ends in an error when it holds far more than its packed size suggests."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from wonderland.core.errors import WonderlandError
from wonderland.core.files import open_plain
from wonderland.core.limits import beyond, limit

RATIO = 100
BLOCK = 1 << 20


def most_unpacked(packed: int) -> int:
    """How many bytes a compressed file of this size may unpack to."""
    return max(limit("unpacked_bytes"), RATIO * packed)


class Unpacked:
    """A stream of unpacked bytes that counts them and refuses more than `most`; wrap any decompressing stream, a zip member too."""

    def __init__(self, stream: Any, path: str | Path, packed: int, form: str = "gzip"):
        self.stream, self.path, self.form, self.most, self.count = stream, path, form, most_unpacked(packed), 0

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; all of them for -1, which takes no more memory than allowed either."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(BLOCK), b""))
        try:
            data = self.stream.read(min(size, max(0, self.most - self.count) + 1))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise WonderlandError(
                f"{self.path} is not a whole {self.form} file: it is damaged or cut short."
            ) from error
        self.count += len(data)
        if self.count > self.most:
            raise beyond("unpacked_bytes", f"{self.path}, once unpacked,", None, self.most)
        return data


@contextmanager
def open_unpacked(path: str | Path) -> Iterator[BinaryIO | Unpacked]:
    """A file for reading, unpacked as a bounded stream if its name ends in .gz."""
    path = Path(path)
    with open_plain(path) as plain:
        if path.suffix.lower() != ".gz":
            yield plain
            return
        with gzip.open(plain, "rb") as stream:
            yield Unpacked(stream, path, os.fstat(plain.fileno()).st_size)


def read_unpacked(path: str | Path, name: str) -> bytes:
    """The whole content of a file, unpacked if it is gzipped, and never more than the limit of this name."""
    most, pieces, count = limit(name), [], 0
    try:
        with open_unpacked(path) as file:
            if isinstance(file, Unpacked):
                while data := file.read(BLOCK):
                    pieces.append(data)
                    count += len(data)
                    if count > most:
                        raise beyond(name, path)
                return b"".join(pieces)
            seen = os.fstat(file.fileno()).st_size
            if seen > most:
                raise beyond(name, path, seen)
            return file.read(most + 1)
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror}).") from error
