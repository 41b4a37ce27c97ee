"""Atomic file writes (temporary file, fsync, rename), reads with a size limit, and a lock on a folder."""

import errno
import fcntl
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wonderland.core.errors import WonderlandError, visible
from wonderland.core.limits import beyond, check, limit
from wonderland.core.strict_json import count_values, dump_json, load_json, parse_json

LONGEST_NAME = 255  # bytes; what file systems take


def write_bytes(path: str | Path, *chunks: bytes) -> None:
    """Replace the content of `path` atomically: a reader sees the whole old file or the whole new one."""
    path = Path(path)
    _refuse_without_lock(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_trouble(error, path) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that a rename in it survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def disk_trouble(error: OSError, path: Path) -> WonderlandError:
    """The error for a failed write, with what to do about it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return WonderlandError(
            f"No room left to write {path}. Free some space and try again; files saved before are intact."
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
    """Write text as UTF-8, atomically; bytes of file names that are not UTF-8 are written out."""
    write_bytes(path, visible(text).encode())


def write_json(path: str | Path, value: Any) -> None:
    """Write indented JSON atomically: keys keep their order, and NaN is refused."""
    write_text(path, dump_json(value) + "\n")


def open_plain(path: str | Path) -> io.BufferedReader:
    """Open a regular file for reading; pipes, devices and folders are refused without blocking."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise WonderlandError(f"{path} is missing.") from error
    except PermissionError as error:
        raise WonderlandError(f"{path}: no permission to read this file.") from error
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror}).") from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        actual = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise WonderlandError(f"{path} is {actual}, not a file.")
    return os.fdopen(handle, "rb")


def read_bytes(path: str | Path, most: str | int) -> bytes:
    """The content of a file; an error if it is larger than `most`: the name of a limit, or a number of bytes."""
    path = Path(path)
    allowed = limit(most) if isinstance(most, str) else most
    try:
        with open_plain(path) as file:
            seen = os.fstat(file.fileno()).st_size
            content = b"" if seen > allowed else file.read(allowed + 1)
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror}).") from error
    if max(seen, len(content)) > allowed:
        if isinstance(most, str):
            raise beyond(most, path, seen if seen > allowed else None)
        raise WonderlandError(f"{path} is larger than {allowed:,} bytes, the limit for this kind of file.")
    return content


def read_json(path: str | Path, most: str = "json_bytes", *, strict: bool = True) -> Any:
    """Parse a JSON file; files over the limit `most` (and that of values of the same name) or nested too deeply are refused.

    With `strict`, so are repeated keys, NaN, infinities and numbers beyond 64 bits, which files of others may hold.
    """
    content = read_bytes(path, most)
    check(most.replace("bytes", "values"), count_values(content), path)
    try:
        return (parse_json if strict else load_json)(content)
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
    """`folder / name`, refused if the name has path separators or is a link that leads out of the folder."""
    folder = Path(folder)
    long = len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME
    if long or not name or name != Path(name).name or name in (".", "..") or "\\" in name or "\0" in name:
        raise WonderlandError(f"{name[:80]!r} is not a plain file name, so it is not read from {folder}.")
    path = folder / name
    if path.is_symlink() and os.path.dirname(os.path.realpath(path)) != os.path.realpath(folder):
        raise WonderlandError(f"{path} is a link that leads out of its folder, so it is not read.")
    return path


_HELD: dict[Path, int] = {}  # the lock files of this process, with the number that the file system gave to each


def _refuse_without_lock(folder: Path) -> None:
    """Stop before writing into a folder whose lock file is no longer the one that this process locked."""
    for place in (folder, folder.parent) if _HELD else ():
        path = (place / ".lock").absolute()
        if path in _HELD:
            try:
                same = path.stat().st_ino == _HELD[path]
            except OSError:
                same = False
            if not same:
                raise WonderlandError(
                    f"The lock file of {place} was removed, so another process may be writing there. Nothing more is written; "
                    "see that no other process runs, and continue with --resume."
                )


def _remove_parts(folder: Path) -> None:
    """Remove the half-written files of processes that were killed."""
    for path in folder.glob(".*.part"):
        writer = path.name.split(".")[-2]
        if writer.isdecimal() and len(writer) < 10 and path.is_file() and not _is_running(int(writer)):
            path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # of another user
    return True


@contextmanager
def lock(folder: str | Path) -> Iterator[None]:
    """Lock a folder for this process; the operating system releases the lock even if the process is killed."""
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
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise disk_trouble(error, path) from error
            raise WonderlandError(
                f"{folder} is in use by another process. Wait for it, or choose another folder."
            ) from error
        _HELD[path.absolute()] = os.fstat(handle).st_ino
        try:
            _remove_parts(path.parent)
            yield
        except OSError as error:  # of an operation without a guard of its own, such as making a folder
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
                raise
            raise disk_trouble(error, Path(error.filename or folder)) from error
    finally:
        _HELD.pop(path.absolute(), None)
        os.close(handle)
