"""Files that are whole or absent: written aside, synced, renamed; read only up to a stated size."""

import errno
import fcntl
import hashlib
import json
import os
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


def disk_trouble(error: OSError, path: Path) -> OSError | WonderlandError:
    """Turn a full disk or a file-size limit into a sentence; leave every other fault as it is."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return WonderlandError(
            f"No room left to write {path}. Free some space, then go on: nothing that was saved is lost."
        )
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return WonderlandError(f"No permission to write {path}. Choose another folder.")
    return error


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8, atomically."""
    write_bytes(path, text.encode())


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON for people to read: sorted by meaning, not by key, and strict (no NaN)."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_bytes(path: str | Path, limit: int) -> bytes:
    """The file's bytes; refused when there are more than `limit`."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            found = file.read(limit + 1)
    except FileNotFoundError as error:
        raise WonderlandError(f"{path} is missing.") from error
    except IsADirectoryError as error:
        raise WonderlandError(f"{path} is a folder where a file should be.") from error
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
    with open(source, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def inside(folder: str | Path, name: str) -> Path:
    """The path of a plain file name in a folder; anything that points elsewhere is refused."""
    folder = Path(folder)
    if not name or name != Path(name).name or name in (".", "..") or "\\" in name or "\0" in name:
        raise WonderlandError(f"{name!r} is not a plain file name, so it is not read from {folder}.")
    path = folder / name
    if path.is_symlink() and path.resolve().parent != folder.resolve():
        raise WonderlandError(f"{path} is a link that leads out of its folder, so it is not read.")
    return path


@contextmanager
def lock(folder: str | Path) -> Iterator[None]:
    """Hold a folder for one process; the system lets go of it however the process ends."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / ".lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
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
