"""Text from files, in a stream: text files, folders of them, JSON lines, columns of tables; never a whole corpus at once."""

import codecs
import csv
import gzip
import json
import os
import shlex
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, nearest, open_plain
from wonderland.data.dataset import Finding, counted
from wonderland.data.folders import natural
from wonderland.data.read import find_delimiter, has_header

TEXTS = (".txt", ".text", ".md", ".rst", ".log", ".tex")
LINES = (".jsonl", ".ndjson")
TABLES = (".csv", ".tsv")
FIELDS = ("text", "content", "document", "body", "sentence")
BLOCK = 1 << 20
PIECE = 1 << 16
LONGEST_LINE = 64 << 20
TOLERATED = 8


@dataclass
class Documents:
    """Documents of a source, read when asked: iterate for (piece of text, whether it ends a document).

    `findings` says, after reading, what was repaired. Reading again gives the same pieces.
    """

    path: Path
    column: str | None = None
    lines: bool = False
    strict: bool = False
    files: list[Path] = field(default_factory=list)
    skipped: int = 0
    read: int = 0
    bad: int = 0
    first_bad: str = ""
    carriages: int = 0

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        self.read = self.bad = self.carriages = 0
        self.first_bad = ""
        for path in self.files:
            yield from self._of(path)

    def texts(self) -> Iterator[str]:
        """The pieces alone."""
        return (piece for piece, _ in self)

    def documents(self) -> Iterator[str]:
        """Whole documents, for corpora that fit in memory."""
        held: list[str] = []
        for piece, ends in self:
            held.append(piece)
            if ends:
                yield "".join(held)
                held = []

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.files)

    @property
    def findings(self) -> list[Finding]:
        """What was noticed while reading."""
        found = []
        name = self.path.name
        if self.bad:
            text = f"{counted(self.bad, 'byte is', 'bytes are')} no UTF-8 text and {'reads' if self.bad == 1 else 'read'} as U+FFFD (first: {self.first_bad})."
            found.append(Finding("invalid bytes", name, self.bad, text))
        if self.carriages:
            text = (
                f"{counted(self.carriages, 'line ends', 'lines end')} as in Windows; they are read as plain line ends."
            )
            found.append(Finding("line ends", name, self.carriages, text))
        if self.skipped:
            text = f"{counted(self.skipped, 'file is', 'files are')} no text by {'its' if self.skipped == 1 else 'their'} name and left out."
            found.append(Finding("foreign files", name, self.skipped, text))
        return found

    def _of(self, path: Path) -> Iterator[tuple[str, bool]]:
        ending = _ending(path)
        if ending in LINES:
            yield from _whole(self._json_lines(path))
        elif ending in TABLES:
            yield from _whole(self._column(path))
        elif self.lines:
            yield from _whole(line for _, line in self._lines(path))
        else:
            yield from cut(self._blocks(path), PIECE)

    def _blocks(self, path: Path) -> Iterator[str]:
        """The text of a file in blocks; bytes that are no text are counted and replaced, too many of them stop it."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        offset, carry = 0, ""
        for data in _bytes(path):
            _refuse_binary(data, path, offset)
            start = offset - len(decoder.getstate()[0])
            text = self._mended(decoder.decode(data), path, start, offset + len(data))
            text = carry + (text.removeprefix("\ufeff") if offset == 0 else text)
            offset += len(data)
            self.read += len(data)
            carry = "\r" if text.endswith("\r") else ""
            text = text[: len(text) - len(carry)]
            self.carriages += text.count("\r\n")
            yield text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        start = offset - len(decoder.getstate()[0])
        rest = self._mended(decoder.decode(b"", final=True), path, start, offset)
        if carry or rest:
            yield carry.replace("\r", "\n") + rest

    def _mended(self, text: str, path: Path, start: int, stop: int) -> str:
        """Text without bytes that are none; `start` is its offset in the file, `stop` what was read of it so far."""
        try:
            text.encode("utf-8")
            return text
        except UnicodeEncodeError as error:
            place = start + len(text[: error.start].encode("utf-8"))
            byte = ord(text[error.start]) - 0xDC00
        self.first_bad = self.first_bad or f"byte 0x{byte:02x} at offset {place:,} of {path.name}"
        self.bad += sum("\udc80" <= letter <= "\udcff" for letter in text)
        if self.strict or self.bad > TOLERATED + stop // 1000:
            zipped = path.suffix.lower() == ".gz"
            remedy = "." if zipped else f", for instance: iconv -f CP1252 -t UTF-8 {shlex.quote(path.name)} > utf8.txt"
            raise WonderlandError(
                f"{path} is not UTF-8 text: byte 0x{byte:02x} at offset {place:,}. Save it as UTF-8{remedy}"
            )
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def _lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """Lines that are not blank, with their numbers."""
        number, held = 0, ""
        for block in self._blocks(path):
            parts = (held + block).split("\n")
            held = parts.pop()
            if len(held) > LONGEST_LINE:
                raise WonderlandError(
                    f"{path}: line {number + len(parts) + 1} is longer than {LONGEST_LINE >> 20} MiB."
                )
            for line in parts:
                number += 1
                if line.strip():
                    yield number, line
        if held.strip():
            yield number + 1, held

    def _json_lines(self, path: Path) -> Iterator[str]:
        for number, line in self._lines(path):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                what = error.msg if isinstance(error, json.JSONDecodeError) else "too deep or too long"
                raise WonderlandError(f"{path}: line {number} is not valid JSON ({what}).") from error
            if isinstance(record, str) and self.column is None:
                yield record
                continue
            if not isinstance(record, dict):
                raise WonderlandError(f"{path}: line {number} holds no object and no text. Write one object a line.")
            name = self.column or next((name for name in FIELDS if name in record), None)
            if name is None or name not in record:
                raise _missing(name, list(record), f"{path}: line {number}")
            if not isinstance(record[name], str):
                raise WonderlandError(
                    f"{path}: line {number} has no text in {name!r}, but {json.dumps(record[name])[:40]}."
                )
            yield record[name]

    def _column(self, path: Path) -> Iterator[str]:
        lines = (line + "\n" for block in self._rows(path) for line in block)
        head: list[str] = []
        for line in lines:
            head.append(line)
            if len(head) >= 200:
                break
        sample = "".join(head)
        delimiter = "\t" if _ending(path) == ".tsv" else find_delimiter(sample)
        delimiter = delimiter if len(delimiter) == 1 else ","
        reader = csv.reader(_chain(head, lines), delimiter=delimiter, strict=True, skipinitialspace=delimiter != "\t")
        first = list(csv.reader(head[:50], delimiter=delimiter))
        headed = bool(first) and has_header([row for row in first if row])
        try:
            names = [cell.strip() for cell in next(reader)] if headed else [f"c{i}" for i in range(len(first[0]))]
            at = self._place(names, path)
            for row in reader:
                if row and at < len(row):
                    yield row[at]
                elif row:
                    raise WonderlandError(
                        f"{path}: line {reader.line_num} has {len(row)} fields and none for {names[at]!r}."
                    )
        except csv.Error as error:
            raise WonderlandError(f"{path}: line {reader.line_num} cannot be read ({error}).") from error
        except (StopIteration, IndexError) as error:
            raise WonderlandError(f"{path} has no rows. Add rows, or give another file.") from error

    def _rows(self, path: Path) -> Iterator[list[str]]:
        held = ""
        for block in self._blocks(path):
            parts = (held + block).split("\n")
            held = parts.pop()
            yield parts
        yield [held] if held else []

    def _place(self, names: list[str], path: Path) -> int:
        name = self.column or next((name for name in FIELDS if name in names), names[0] if len(names) == 1 else None)
        if name is None or name not in names:
            raise _missing(name, names, str(path))
        return names.index(name)


def read_documents(
    source: str | Path, *, column: str | None = None, lines: bool = False, strict: bool = False
) -> Documents:
    """The documents of a text file, a folder of text files, JSON lines or a column of a CSV file, also gzipped.

    Args:
        source: a file or a folder. A text file is one document; so is each file of a folder.
        column: the field or column that holds the text ("text", "content" and the like are found by themselves).
        lines: each line of a text file is a document of its own.
        strict: stop at the first byte that is not UTF-8, instead of replacing a few.
    """
    path = Path(source).expanduser()
    try:
        exists = path.exists()
    except (OSError, ValueError):
        exists = False
    if not exists:
        beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise WonderlandError(f"There is no file or folder {path}.{nearest(path.name, beside)}")
    found = Documents(path, column, lines, strict)
    if not path.is_dir():
        if _ending(path) == ".parquet":
            raise WonderlandError(f"{path}: text is read from text files, JSON lines and CSV, not from Parquet.")
        found.files = [path]
        return found
    for folder, inner, names in os.walk(path):
        inner[:] = sorted((name for name in inner if not name.startswith(".")), key=natural)
        for name in sorted(names, key=natural):
            file = Path(folder) / name
            if name.startswith("."):
                continue
            if _ending(file) in (*TEXTS, *LINES) and file.is_file() and not file.is_symlink():
                found.files.append(file)
            else:
                found.skipped += 1
    if not found.files:
        there = f"; {counted(found.skipped, 'file is', 'files are')} of another kind" if found.skipped else ""
        raise WonderlandError(f"{path} holds no text files ({', '.join(TEXTS)}){there}.")
    return found


def cut(blocks: Iterable[str], size: int = PIECE) -> Iterator[tuple[str, bool]]:
    """Blocks of one document as pieces of about `size` characters, cut where no token is cut: before a space.

    A piece ends before a space or a line end that follows a letter or a sign. Text that has no such place in four pieces'
    length is cut where it is.

    >>> [piece for piece, _ in cut(["one two three"], size=6)]
    ['one', ' two', ' three']
    """
    held = ""
    for block in blocks:
        held += block
        start = 0
        while len(held) - start > 4 * size or (len(held) - start > size and _break(held, start, start + size)):
            stop = _break(held, start, start + size) or _break(held, start, start + 4 * size) or start + 4 * size
            yield held[start:stop], False
            start = stop
        held = held[start:]
    yield held, True


def _break(text: str, start: int, stop: int) -> int | None:
    """The last place in text[start:stop] that has a space after a character that is none, and a word behind it."""
    for mark in (" ", "\n"):
        at = text.rfind(mark, start + 1, stop)
        while at > start and text[at - 1].isspace():
            at = text.rfind(mark, start + 1, at)
        if at > start:
            return at
    return None


def _whole(texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Documents that are read whole; long ones in pieces."""
    for text in texts:
        if len(text) <= PIECE:
            yield text, True
        else:
            yield from cut([text], PIECE)


def _bytes(path: Path) -> Iterator[bytes]:
    zipped = path.suffix.lower() == ".gz"
    try:
        with open_plain(path) as plain, gzip.open(plain, "rb") if zipped else plain as file:
            while data := file.read(BLOCK):
                yield data
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise WonderlandError(f"{path} is not a whole gzip file: it is damaged or cut short.") from error
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror}).") from error


def _refuse_binary(data: bytes, path: Path, offset: int) -> None:
    if offset == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise WonderlandError(f"{path} is UTF-16 text. Save it as UTF-8.")
    at = data.find(b"\0")
    if at >= 0:
        raise WonderlandError(f"{path} is not text: there is a zero byte at offset {offset + at:,}.")


def _missing(name: str | None, names: list[str], where: str) -> WonderlandError:
    known = ", ".join(repr(key) for key in names[:8])
    if name is None:
        return WonderlandError(
            f"{where} has no field {FIELDS[0]!r}: name the one that holds the text with the option column. It has {known}."
        )
    return WonderlandError(f"{where} has no field {name!r}.{nearest(name, names) or f' It has {known}.'}")


def _ending(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffixes = suffixes[:-1] if suffixes[-1:] == [".gz"] else suffixes
    return suffixes[-1] if suffixes else ""


def _chain(head: list[str], rest: Iterator[str]) -> Iterator[str]:
    yield from head
    yield from rest


def is_text_file(path: Any) -> bool:
    """Whether a file is plain text by its name.

    >>> is_text_file("a.txt"), is_text_file("a.md.gz"), is_text_file("a.csv")
    (True, True, False)
    """
    return _ending(Path(path)) in TEXTS
