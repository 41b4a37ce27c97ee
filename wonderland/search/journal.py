"""The journal of a study: a file that only grows, of checksummed lines, which several processes append to in turn."""

import fcntl
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, disk_trouble
from wonderland.core.limits import limit
from wonderland.search.presence import LockFiles

FILE, LOCK = "journal.jsonl", "journal.lock"


class Journal:
    """Entries of a study, in the order in which they were written.

    A line is the CRC-32 of its text and the text. An entry is written, whole and synced to disk, by a process that holds the
    lock of the file; a last line that a kill or a power cut left incomplete is no entry, and is cut off by the next writer.
    """

    one_place = True  # all workers see the same folder of weights

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self.about = str(folder)
        locks = LockFiles(self.folder / "workers")
        self.present, self.is_alive, self.is_inhabited = locks.present, locks.is_alive, locks.is_inhabited
        self.entries: list[dict[str, Any]] = []
        self._size = 0  # bytes of the file that `entries` holds

    def exists(self) -> bool:
        """Whether a study was begun here."""
        return self.path.is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait for the lock, then read what others have written; a torn last line is cut off."""
        try:
            handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise disk_trouble(error, self.folder / LOCK) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self.read()
            if self.path.exists() and self.path.stat().st_size > self._size:
                os.truncate(self.path, self._size)
            yield
        finally:
            os.close(handle)

    def read(self) -> list[dict[str, Any]]:
        """All whole entries, those of other processes included."""
        if not self.path.exists():
            return self.entries
        with self.path.open("rb") as file:
            file.seek(self._size)
            most = limit("records_bytes")
            content = file.read(most + 1)
        if len(content) > most:
            raise WonderlandError(f"{self.path} is larger than {most:,} bytes: it is damaged or not ours.")
        lines = content.split(b"\n")
        for number, line in enumerate(lines[:-1]):
            entry = _entry(line)
            if entry is None:
                if number == len(lines) - 2 and not lines[-1]:
                    break  # the last line: torn by a power cut
                raise WonderlandError(
                    f"{self.path} is damaged after {self._size:,} bytes: a line does not have its checksum. "
                    "Restore it, or start another study."
                )
            self.entries.append(entry)
            self._size += len(line) + 1
        return self.entries

    def append(self, entry: dict[str, Any]) -> None:
        """Write one entry to disk; only while `locked`."""
        text = json.dumps(entry, allow_nan=False, ensure_ascii=True).encode()
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                if os.write(handle, line) != len(line):
                    raise OSError(28, "No space left on device")
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, self._size)
                raise
            finally:
                os.close(handle)
        except OSError as error:
            raise disk_trouble(error, self.path) from error
        self.entries.append(json.loads(text))
        self._size += len(line)


def _entry(line: bytes) -> dict[str, Any] | None:
    """The entry of a line; None if its checksum is not that of its text."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
