"""Bundle: the files of a folder or of a zip file, sorted by their ending, with the folder that each lies in as its class."""

import functools
import os
import string
import zipfile
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from wonderland.core import WonderlandError, read_bytes
from wonderland.core.errors import visible
from wonderland.core.limits import check
from wonderland.core.unpack import Unpacked
from wonderland.data.dataset import Finding, counted


@dataclass(frozen=True)
class Member:
    """One file: on the disk, or inside the zip file at `path`. `label` is the class folder, "" where there is none."""

    name: str
    path: Path
    inside: str | None = None
    label: str = ""

    def read(self, most: str) -> bytes:
        """Its content; more than the limit of this name is refused."""
        if self.inside is None:
            return read_bytes(self.path, most)
        try:
            archive = opened_zip(self.path)
            entry = archive.getinfo(self.inside)
            check(most, entry.file_size, self)
            with archive.open(entry) as stream:
                return Unpacked(stream, str(self), entry.compress_size, "zip").read()
        except (zipfile.BadZipFile, KeyError, OSError, NotImplementedError, RuntimeError) as error:
            raise WonderlandError(
                f"{self} cannot be unpacked: the zip file is damaged, encrypted or changed."
            ) from error

    def __str__(self) -> str:
        return visible(str(self.path if self.inside is None else self.path / self.inside))


@dataclass
class Bundle:
    """The files of one ending, counts of the others, and links that were not followed."""

    root: Path
    name: str
    members: list[Member] = field(default_factory=list)
    foreign: Counter = field(default_factory=Counter)
    links: int = 0

    @property
    def labels(self) -> list[str]:
        """The class folders that hold files."""
        return sorted({member.label for member in self.members if member.label})

    def findings(self, noun: str) -> list[Finding]:
        """What was left out; `noun` names what the files hold, such as "recording"."""
        findings = []
        if self.foreign:
            endings = ", ".join(f"{suffix or 'no suffix'}: {n}" for suffix, n in sorted(self.foreign.items())[:5])
            files = (f"file that is not a {noun} is", f"files that are not {noun}s are")
            text = f"{counted(self.foreign.total(), *files)} left out ({endings})."
            findings.append(Finding("foreign files", str(self.root), self.foreign.total(), text))
        if self.links:
            links = ("link to a folder or out of the data is", "links to folders or out of the data are")
            findings.append(
                Finding("links", str(self.root), self.links, f"{counted(self.links, *links)} not followed.")
            )
        return findings


def opened_zip(path: Path) -> zipfile.ZipFile:
    """A zip file whose directory is read once, as long as the file stays as it is."""
    about = path.stat()
    return _opened(path, about.st_mtime_ns, about.st_size)


@functools.lru_cache(8)
def _opened(path: Path, changed: int, size: int) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def read_bundle(root: Path, suffixes: Collection[str]) -> Bundle:
    """List a folder or a zip file; hidden files are skipped, and links out of a folder are not followed."""
    return _of_zip(root, suffixes) if root.is_file() else _of_folder(root, suffixes)


def is_zip(path: Path) -> bool:
    return path.is_file() and path.suffix.casefold() == ".zip" and zipfile.is_zipfile(path)


def _of_folder(root: Path, suffixes: Collection[str]) -> Bundle:
    bundle, home = Bundle(root, root.resolve().name), root.resolve()
    for folder, folders, files in os.walk(root, onerror=_unreadable):
        directory = Path(folder)
        links = [name for name in folders if (directory / name).is_symlink() and not name.startswith(".")]
        bundle.links += len(links)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in links)
        for name in sorted(files):
            path = directory / name
            if name.startswith("."):
                continue
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(home):
                bundle.links += 1
                continue
            _add(bundle, path.relative_to(root).as_posix(), path, None, suffixes)
    return bundle


def _of_zip(path: Path, suffixes: Collection[str]) -> Bundle:
    bundle = Bundle(path, path.stem)
    try:
        entries = [entry for entry in opened_zip(path).infolist() if not entry.is_dir()]
    except (zipfile.BadZipFile, OSError) as error:
        raise WonderlandError(f"{path} is not a whole zip file: it is damaged or cut short.") from error
    check("archive_files", len(entries), path)
    names = [entry.filename for entry in entries if not _hidden(entry.filename)]
    tops = {name.split("/")[0] for name in names}
    shared = f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in names) else ""
    for name in sorted(names):
        _add(bundle, name.removeprefix(shared), path, name, suffixes)
    return bundle


def _hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)


def _add(bundle: Bundle, name: str, path: Path, inside: str | None, suffixes: Collection[str]) -> None:
    suffix = PurePosixPath(name).suffix.casefold()
    if suffix not in suffixes:
        bundle.foreign[suffix[:12]] += 1
        return
    top = name.split("/")[0] if "/" in name else ""
    bundle.members.append(Member(visible(name), path, inside, visible(top)))


def _unreadable(error: OSError) -> None:
    raise WonderlandError(f"{error.filename} cannot be read ({error.strerror}).") from error


def member_at(folder: Path, written: str) -> Member | None:
    """The file that a cell of a table names: beside the table, or inside of a zip file there; None where there is none."""
    path = folder / written.strip()
    if path.is_file():
        return Member(written.strip(), path)
    for parent in path.parents:
        if parent == folder:
            break
        if is_zip(parent):
            inner = path.relative_to(parent).as_posix()
            known = inner in opened_zip(parent).NameToInfo
            return Member(written.strip(), parent, inner) if known else None
    return None


def read_names(names: list[str], pattern: str) -> dict[str, list[str]]:
    """Columns from file names without their ending, by a pattern such as "{digit}_{speaker}_{take}".

    >>> read_names(["0_anna_1.wav", "7_ben_12.wav"], "{digit}_{speaker}_{take}")
    {'digit': ['0', '7'], 'speaker': ['anna', 'ben'], 'take': ['1', '12']}
    """
    try:
        pieces = list(string.Formatter().parse(pattern))
    except ValueError as error:
        raise WonderlandError(
            f"The pattern of names {pattern!r} cannot be read: write it as {{label}}_{{speaker}}."
        ) from error
    fields = [name for _, name, _, _ in pieces if name is not None]
    plain = all(not form and not conversion for _, name, form, conversion in pieces if name is not None)
    if not fields or not plain or len(set(fields)) < len(fields) or not all(map(str.isidentifier, fields)):
        raise WonderlandError(
            f"The pattern of names {pattern!r} needs fields with different names: {{label}}_{{speaker}}."
        )
    columns: dict[str, list[str]] = {name: [] for name in fields}
    for name in names:
        stem = PurePosixPath(name).stem
        values = _parts(stem, pieces)
        if values is None:
            raise WonderlandError(
                f"The file name {stem!r} does not fit the pattern {pattern!r}. Change the pattern, or the name."
            )
        for field_name, value in zip(fields, values, strict=True):
            columns[field_name].append(value)
    return columns


def _parts(stem: str, pieces: list) -> list[str] | None:
    """The values of the fields in a name: each ends where the text after it begins; None where the name does not fit."""
    first = pieces[0][0]
    if not stem.startswith(first):
        return None
    rest, values = stem[len(first) :], []
    names = [piece for piece in pieces if piece[1] is not None]
    after = [piece[0] for piece in pieces[1:]] + [""]
    for place in range(len(names)):
        until = after[place]
        if place == len(names) - 1:
            if not rest.endswith(until):
                return None
            value, rest = rest[: len(rest) - len(until)] if until else rest, ""
        else:
            value, separator, rest = rest.partition(until) if until else (rest[:1], "1", rest[1:])
            if not separator:
                return None
        if not value:
            return None
        values.append(value)
    return values
