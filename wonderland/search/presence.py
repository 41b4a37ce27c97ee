"""Which workers of a study are alive: locks on files, which the operating system releases when a process ends in any way."""

import fcntl
import itertools
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wonderland.core import disk_trouble

PLACE = "place"  # the file with the random name of a folder of weights
_NAME = re.compile(r"[0-9a-f-]{1,120}")
_counter = itertools.count()


def worker_name() -> str:
    """A name that no other worker has."""
    return f"{os.getpid()}-{time.time_ns():x}-{os.urandom(4).hex()}-{next(_counter)}"


class LockFiles:
    """Workers of one machine: each locks a file of its own, and shares the lock of the place where it keeps weights."""

    def __init__(self, folder: Path):
        self.folder = folder

    @contextmanager
    def present(self, name: str, place: str | None = None) -> Iterator[None]:
        """Be seen as alive until this block ends or the process dies."""
        own, shared = self.folder / f"{name}.lock", None if place is None else self.folder / f"{place}.place"
        handles: list[int] = []
        try:
            try:
                self.folder.mkdir(exist_ok=True)
                for path, mode in ((own, fcntl.LOCK_EX), (shared, fcntl.LOCK_SH)):
                    if path is not None:
                        handles.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
                        fcntl.flock(handles[-1], mode)
            except OSError as error:
                raise disk_trouble(error, own) from error
            yield
        finally:
            own.unlink(missing_ok=True)
            for handle in handles:
                os.close(handle)

    def is_alive(self, name: str | None) -> bool:
        """Whether a worker still holds its lock."""
        return self._is_held(f"{name}.lock") if _NAME.fullmatch(name or "") else False

    def is_inhabited(self, place: str | None) -> bool:
        """Whether any worker that keeps its weights at a place is alive."""
        return self._is_held(f"{place}.place") if _NAME.fullmatch(place or "") else False

    def _is_held(self, name: str) -> bool:
        try:
            handle = os.open(self.folder / name, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False
