"""The cache of compiled kernels: built once on the user's machine, checked by a digest before loading, kept where nobody else writes.

A library in the cache is executed, so it is loaded only from a folder that no other user can change, and only if its content
matches the digest that was written beside it. Anything else is built again.
"""

import ctypes
import fcntl
import functools
import grp
import hashlib
import os
import platform
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parent / "kernels"
FLAGS = ("-O3", "-march=native", "-std=c++17", "-fPIC", "-shared", "-fopenmp", "-fno-math-errno", "-fno-trapping-math")
# With WONDERLAND_SANITIZE=1, for `make sanitize`: reads and writes outside of arrays, and undefined behaviour, end the process.
SANITIZE = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
LONGEST_BUILD = 300  # seconds
_LOADING = threading.RLock()
_said: set[str] = set()


class BuildError(Exception):
    """A kernel cannot be built or loaded; the message says why."""


@functools.cache
def _load(name: str) -> ctypes.CDLL | BuildError:
    try:
        if folder := cache_folder():
            return _from_cache(folder, name)
        with _temporary_folder() as folder:
            # What is mapped into memory stays there when its file is removed.
            return ctypes.CDLL(str(_build(folder, name)))
    except (OSError, subprocess.SubprocessError, BuildError) as error:
        reason = BuildError(_first_line(error))
        say(
            f"The compiled kernel {name!r} is not in use: {reason}. PyTorch computes the same more slowly. Install g++, or "
            "set WONDERLAND_NATIVE=0 to do without kernels.",
            once=f"failed: {reason}",
        )
        return reason


def load(name: str) -> ctypes.CDLL:
    """The compiled form of kernels/NAME.cpp, from the cache or built now (2 to 10 seconds); BuildError where that fails."""
    with _LOADING:
        library = _load(name)
    if isinstance(library, BuildError):
        raise library
    return library


def _from_cache(folder: Path, name: str) -> ctypes.CDLL:
    path = folder / f"{name}-{_key(name)}.so"
    if not _is_whole(path):
        with _building(folder, name):
            if not _is_whole(path):  # another process may have built it while this one waited
                _build_into(folder, name, path)
    return ctypes.CDLL(str(path))


def _is_whole(path: Path) -> bool:
    """Whether a library is there and has the content that its digest was taken from."""
    try:
        return path.with_suffix(".sha256").read_bytes() == _digest(path)
    except OSError:
        return False


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest().encode() + b"\n"


def _build_into(folder: Path, name: str, path: Path) -> None:
    """Build aside, write everything to disk, then rename: the library first, so that a digest never names what is not there."""
    aside = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".part", dir=folder))
    try:
        built, digest = _build(aside, name), aside / "sha256"
        digest.write_bytes(_digest(built))
        for file in (built, digest):
            _sync(file)
        os.replace(built, path)
        os.replace(digest, path.with_suffix(".sha256"))
        _sync(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _build(folder: Path, name: str) -> Path:
    """Compile one kernel in a folder of its own, where the compiler also keeps its temporary files."""
    say(
        "Compiling kernels for this machine, once: a few seconds for each that is used.",
        once="compiling",
    )
    compiler, path = _compiler(), folder / "library.so"
    command = [compiler, *_flags(), f"-I{SOURCES}", "-x", "c++", str(SOURCES / f"{name}.cpp"), "-o", str(path)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST_BUILD,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    except FileNotFoundError as error:
        raise BuildError(f"there is no compiler {compiler}") from error
    if done.returncode or not path.exists():
        raise BuildError(_first_line(done.stderr.strip() or f"{compiler} failed"))
    return path


@contextmanager
def _building(folder: Path, name: str) -> Iterator[None]:
    """One process at a time builds a kernel; the others wait for it. Removes what killed builds left behind."""
    handle = os.open(folder / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks: temporary names are unique, so that building twice does no harm
        else:
            for left in folder.glob(f".{name}.*.part"):
                shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(handle)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wonderland-kernels-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@functools.cache
def cache_folder() -> Path | None:
    """The folder of compiled kernels; None, with a message, where there is none that only this user can write to."""
    home = os.environ.get("WONDERLAND_CACHE") or os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(home) if home else Path.home() / ".cache").absolute() / "wonderland" / "kernels"
    except RuntimeError as error:  # there is no home directory
        reason = str(error)
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            reason = why_unsafe(folder) or ("" if os.access(folder, os.W_OK) else f"{folder} cannot be written")
        except OSError as error:
            reason = f"{error.filename or folder}: {error.strerror}"
        if not reason:
            return folder
    say(
        f"Compiled kernels cannot be kept ({reason}), so each process compiles them again. Set WONDERLAND_CACHE to a folder "
        "that only you can write to.",
        once="no cache",
    )
    return None


def why_unsafe(folder: Path) -> str:
    """Why another user could replace files in this folder: its owner, its mode, or those of a folder or link on the way to it.

    Empty if nobody can.
    """
    for place in (folder.parent, folder):
        if place.is_symlink():
            return f"{place} is a link"
    status = folder.stat()
    if status.st_uid != os.getuid():
        return f"{folder} belongs to another user"
    if stat.S_IMODE(status.st_mode) & 0o022:
        return f"others can write to {folder}"
    for place in (*folder.parents, *Path(os.path.realpath(folder)).parents):
        for status in (place.lstat(), place.stat()):
            if status.st_uid not in (0, os.getuid()):
                return f"{place} belongs to another user"
        if _others_can_write(status):
            return f"others can write to {place}"
    return ""


def _others_can_write(status: os.stat_result) -> bool:
    """Whether another user can rename what is in a folder. In a sticky folder, such as /tmp, only owners can."""
    if status.st_mode & stat.S_ISVTX:
        return False
    return bool(status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid)))


def _is_private(group: int) -> bool:
    """Whether a group is the one that systems make for each user alone: it has the user's name and no other members."""
    try:
        user, entry = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}


def say(message: str, *, once: str) -> None:
    """Print a message on stderr, once in a process; never with WONDERLAND_QUIET=1."""
    if once not in _said:
        _said.add(once)
        if os.environ.get("WONDERLAND_QUIET", "0") != "1":
            print(f"wonderland: {message}", file=sys.stderr, flush=True)


def clear() -> None:
    """Forget what was loaded and said, as in a new process."""
    _load.cache_clear()
    cache_folder.cache_clear()
    _said.clear()


def _key(name: str) -> str:
    """A digest of everything that the compiled form depends on."""
    source = (SOURCES / f"{name}.cpp").read_bytes()
    common = b"".join(path.read_bytes() for path in sorted(SOURCES.glob("*.h")))
    parts = [source, common, repr(_flags()).encode(), _compiler().encode(), _machine().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]


def _flags() -> tuple[str, ...]:
    return (*FLAGS, *SANITIZE) if os.environ.get("WONDERLAND_SANITIZE") == "1" else FLAGS


def _compiler() -> str:
    return os.environ.get("CXX", "g++")


def _machine() -> str:
    """What -march=native depends on: a cache in a shared home directory must not be used by another processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.platform() + platform.processor()
    return platform.machine() + "".join(sorted({line for line in lines if line.startswith(("flags", "model name"))}))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _first_line(error: object) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
