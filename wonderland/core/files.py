"""Files that are whole or absent: written aside, synced, renamed; read only up to a stated size."""

import errno
import fcntl
import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wonderland.core.errors import WonderlandError

MIB = 1 << 20


def write_bytes(path: str | Path, *chunks: bytes) -> None:
    """Replace `path` by these bytes in one step: a reader sees the old file or the new one, never a piece."""
    path = Path(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        sync_folder(path.parent)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise disk_trouble(error, path) from error
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def disk_trouble(error: OSError, path: Path) -> WonderlandError:
    """A fault of the disk or of a path as a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return WonderlandError(
            f"No room left to write {path}. Free some space, then go on: nothing that was saved is lost."
        )
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return WonderlandError(f"No permission to write {path}. Choose another folder.")
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return WonderlandError(
            f"{path} cannot be written: there is a file where a folder should be. Choose another name."
        )
    if error.errno == errno.EISDIR:
        return WonderlandError(f"{path} cannot be written: it is a folder. Choose another name.")
    return WonderlandError(f"{path} cannot be written ({error.strerror}). Choose another name.")


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8, atomically."""
    write_bytes(path, text.encode())


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON for people to read: sorted by meaning, not by key, and strict (no NaN)."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def open_plain(path: str | Path) -> io.BufferedReader:
    """Open a plain file for reading; a pipe, a device or a folder in its place is refused, and never waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise WonderlandError(f"{path} is missing.") from error
    except PermissionError as error:
        raise WonderlandError(f"{path}: no permission to read this file.") from error
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror}).") from error
    kind = os.fstat(handle).st_mode
    if not stat.S_ISREG(kind):
        os.close(handle)
        what = "a folder" if stat.S_ISDIR(kind) else "a pipe or a device"
        raise WonderlandError(f"{path} is {what} where a file should be.")
    return os.fdopen(handle, "rb")


def read_bytes(path: str | Path, limit: int) -> bytes:
    """The file's bytes; refused when there are more than `limit`."""
    path = Path(path)
    try:
        with open_plain(path) as file:
            found = file.read(limit + 1)
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror}).") from error
    if len(found) > limit:
        raise WonderlandError(f"{path} is larger than {limit // MIB} MiB, the limit for this kind of file.")
    return found


def read_json(path: str | Path, limit: int = 16 * MIB) -> Any:
    """Parse a JSON file of bounded size and depth."""
    try:
        return json.loads(read_bytes(path, limit))
    except (ValueError, RecursionError) as error:
        if isinstance(error, WonderlandError):
            raise
        raise WonderlandError(f"{path} is not valid JSON: it is damaged or not ours.") from error


def sha256(source: bytes | str | Path) -> str:
    """Hex digest of bytes, or of a file's content."""
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    with open_plain(source) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def inside(folder: str | Path, name: str) -> Path:
    """The path of a plain file name in a folder; anything that points elsewhere is refused."""
    folder = Path(folder)
    if not name or name != Path(name).name or name in (".", "..") or "\\" in name or "\0" in name:
        raise WonderlandError(f"{name!r} is not a plain file name, so it is not read from {folder}.")
    path = folder / name
    if path.is_symlink() and os.path.dirname(os.path.realpath(path)) != os.path.realpath(folder):
        raise WonderlandError(f"{path} is a link that leads out of its folder, so it is not read.")
    return path


@contextmanager
def lock(folder: str | Path) -> Iterator[None]:
    """Hold a folder for one process; the system lets go of it however the process ends."""
    path = Path(folder) / ".lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise disk_trouble(error, path.parent) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise WonderlandError(
                f"{folder} is in use by another process. Wait for it, or choose another folder."
            ) from error
        yield
    finally:
        os.close(handle)
