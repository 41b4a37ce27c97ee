"""One table in several files: the files of a folder, or of a zip file."""

import struct
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath

import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.core.limits import beyond, check, limit
from wonderland.core.unpack import Unpacked
from wonderland.data.dataset import Finding, counted
from wonderland.data.folders import natural
from wonderland.data.read import SUFFIXES, TEXTS, read_file, read_text
from wonderland.data.reading import Reading

_PARTS = ("train", "training", "test", "testing", "valid", "validation", "val", "dev")
_IN_ZIP = (*TEXTS, ".json", ".jsonl", ".ndjson")

Piece = tuple[pd.DataFrame, list[Finding]]


def read_folder(
    folder: Path, paths: list[Path], as_text: Collection[str] = (), reading: Reading | None = None
) -> tuple[pd.DataFrame, list[Finding]]:
    """The files of a folder as one table, in natural order of their names; all must have the same columns."""
    paths = sorted(paths, key=lambda path: natural(path.as_posix()))
    names = [path.relative_to(folder).as_posix() for path in paths]
    return _joined(folder, names, lambda i: read_file(paths[i], as_text, reading))


def read_zip(path: Path, as_text: Collection[str], reading: Reading) -> tuple[pd.DataFrame, list[Finding]]:
    """The tables in a zip file as one table; `sheet` names one of them."""
    try:
        with zipfile.ZipFile(path) as packed:
            members = [member for member in packed.infolist() if _is_table(member)]
            names = [member.filename for member in members]
            if reading.sheet is not None:
                if reading.sheet not in names:
                    raise WonderlandError(f"{path} holds no file {reading.sheet!r}.{nearest(reading.sheet, names)}")
                members = [member for member in members if member.filename == reading.sheet]
            if not members:
                raise WonderlandError(f"{path} holds no table: files in it may end in {', '.join(_IN_ZIP)}.")
            check("archive_files", len(members), path)
            check("table_bytes", sum(member.file_size for member in members), f"{path}, once unpacked,")
            if any(member.flag_bits & 1 for member in members):
                raise WonderlandError(f"{path} is encrypted. Unpack it first.")
            if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
                raise WonderlandError(f"{path} is compressed by another method than deflate. Unpack it first.")
            members.sort(key=lambda member: natural(member.filename))

            def read(i: int) -> Piece:
                member = members[i]
                with packed.open(member) as file:
                    data = Unpacked(file, path, max(1, member.compress_size), "zip").read()
                inner = path / member.filename
                return read_text(data, inner, inner.suffix.lower(), as_text, reading)

            return _joined(path, [member.filename for member in members], read)
    except WonderlandError:
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, NotImplementedError, ValueError) as error:
        raise WonderlandError(f"{path} is not a zip file, or it is damaged.") from error


def _is_table(member: zipfile.ZipInfo) -> bool:
    inner = PurePosixPath(member.filename)
    hidden = any(part.startswith((".", "__MACOSX")) for part in inner.parts)
    return not member.is_dir() and not hidden and inner.suffix.lower() in _IN_ZIP


def _joined(where: Path, names: list[str], read: Callable[[int], Piece]) -> Piece:
    """The tables as one, if they have the same columns."""
    if len(names) == 1:
        return read(0)
    check("archive_files", len(names), where)
    parts = [name for name in names if PurePosixPath(name).name.split(".")[0].casefold() in _PARTS]
    if parts:
        raise WonderlandError(
            f"{where} holds {', '.join(names[:5])}: parts of one set of data. Fit one of them, and give another with --test."
        )
    frames, findings, columns, size = [], [], [], 0
    for i, name in enumerate(names):
        frame, noticed = read(i)
        if frames and set(frame.columns) != set(columns):
            extra = [column for column in frame.columns if column not in columns]
            lacking = [column for column in columns if column not in frame.columns]
            difference = f"has a column {extra[0]!r}" if extra else f"has no column {lacking[0]!r}"
            other = "has not" if extra else "has"
            raise WonderlandError(
                f"{where} holds different tables: {name} {difference}, which {names[0]} {other}. Name one file, or sort them into folders."
            )
        columns = columns or list(frame.columns)
        size += int(frame.memory_usage(index=False).sum())
        if size > limit("table_bytes"):
            raise beyond("table_bytes", f"{where}, joined,")
        frames.append(frame.loc[:, columns])
        findings += [one for one in noticed if one.kind not in {other.kind for other in findings}]
    joined = pd.concat(frames, ignore_index=True)
    text = f"{counted(len(names), 'file', 'files')} of {where.name} are one table: {names[0]} to {names[-1]}."
    return joined, [*findings, Finding("files", where.name, len(names), text)]


def table_files(folder: Path) -> list[Path]:
    """The files of tables in a folder, not in its subfolders."""
    endings = tuple(suffix for suffix in SUFFIXES if suffix not in (".txt", ".dat", ".data", ".json"))
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise WonderlandError(f"{folder} cannot be read ({error.strerror}).") from error
    named = [entry for entry in entries if not entry.name.startswith(".") and entry.is_file()]
    return [entry for entry in named if entry.name.casefold().removesuffix(".gz").endswith(endings)]
