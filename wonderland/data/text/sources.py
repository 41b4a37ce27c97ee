"""Documents from files, as a stream: text files, folders, JSON lines, columns of CSV; never a whole corpus in memory."""

import codecs
import csv
import itertools
import json
import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, nearest
from wonderland.core.limits import beyond, limit
from wonderland.core.unpack import open_unpacked
from wonderland.data.dataset import Finding, counted
from wonderland.data.folders import natural
from wonderland.data.read import find_delimiter, has_header

TEXTS = (".txt", ".text", ".md", ".rst", ".log", ".tex")
JSON_LINES = (".jsonl", ".ndjson")
TABLES = (".csv", ".tsv")
TEXT_FIELDS = ("text", "content", "document", "body", "sentence")
BLOCK_SIZE = 1 << 20
PIECE_SIZE = 1 << 16
TOLERATED_BYTES = 8


@dataclass
class Documents:
    """The documents of a source, read lazily: iterating gives pairs (piece of text, whether it ends a document).

    Iterating again gives the same pieces. `findings` lists, after an iteration, what was repaired.
    """

    path: Path
    column: str | None = None
    lines: bool = False
    strict: bool = False
    files: list[Path] = field(default_factory=list)
    skipped: int = 0
    bytes_read: int = 0
    invalid_bytes: int = 0
    first_invalid: str = ""
    crlf_lines: int = 0

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        self.bytes_read = self.invalid_bytes = self.crlf_lines = 0
        self.first_invalid = ""
        for path in self.files:
            yield from self._pieces_of_file(path)

    def texts(self) -> Iterator[str]:
        """The pieces alone."""
        return (piece for piece, _ in self)

    def documents(self) -> Iterator[str]:
        """Whole documents, for corpora that fit in memory."""
        pieces: list[str] = []
        for piece, ends in self:
            pieces.append(piece)
            if ends:
                yield "".join(pieces)
                pieces = []

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.files)

    @property
    def findings(self) -> list[Finding]:
        """What was noticed while reading."""
        findings = []
        name = self.path.name
        if self.invalid_bytes:
            text = f"{counted(self.invalid_bytes, 'byte is', 'bytes are')} no UTF-8 text and {'reads' if self.invalid_bytes == 1 else 'read'} as U+FFFD (first: {self.first_invalid})."
            findings.append(Finding("invalid bytes", name, self.invalid_bytes, text))
        if self.crlf_lines:
            text = (
                f"{counted(self.crlf_lines, 'line ends', 'lines end')} as in Windows; they are read as plain line ends."
            )
            findings.append(Finding("line ends", name, self.crlf_lines, text))
        if self.skipped:
            text = f"{counted(self.skipped, 'file is', 'files are')} no text by {'its' if self.skipped == 1 else 'their'} name and left out."
            findings.append(Finding("foreign files", name, self.skipped, text))
        return findings

    def _pieces_of_file(self, path: Path) -> Iterator[tuple[str, bool]]:
        suffix = _suffix(path)
        if suffix in JSON_LINES:
            yield from _as_pieces(self._json_lines(path))
        elif suffix in TABLES:
            yield from _as_pieces(self._column_cells(path))
        elif self.lines:
            yield from _as_pieces(line for _, line in self._lines(path))
        else:
            yield from cut(self._blocks(path), PIECE_SIZE)

    def _blocks(self, path: Path) -> Iterator[str]:
        """The text of a file in blocks; bytes that are not UTF-8 are counted and replaced, and too many of them are an error."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        offset, carry = 0, ""
        for data in _read_blocks(path):
            _refuse_binary(data, path, offset)
            start = offset - len(decoder.getstate()[0])
            text = self._replace_invalid(decoder.decode(data), path, start, offset + len(data))
            text = carry + (text.removeprefix("\ufeff") if offset == 0 else text)
            offset += len(data)
            self.bytes_read += len(data)
            carry = "\r" if text.endswith("\r") else ""
            text = text[: len(text) - len(carry)]
            self.crlf_lines += text.count("\r\n")
            yield text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        start = offset - len(decoder.getstate()[0])
        rest = self._replace_invalid(decoder.decode(b"", final=True), path, start, offset)
        if carry or rest:
            yield carry.replace("\r", "\n") + rest

    def _replace_invalid(self, text: str, path: Path, start: int, stop: int) -> str:
        """The text with invalid bytes replaced; `start` is its offset in the file, `stop` the number of bytes read so far."""
        try:
            text.encode("utf-8")
            return text
        except UnicodeEncodeError as error:
            place = start + len(text[: error.start].encode("utf-8"))
            byte = ord(text[error.start]) - 0xDC00
        self.first_invalid = self.first_invalid or f"byte 0x{byte:02x} at offset {place:,} of {path.name}"
        self.invalid_bytes += sum("\udc80" <= letter <= "\udcff" for letter in text)
        if self.strict or self.invalid_bytes > TOLERATED_BYTES + stop // 1000:
            gzipped = path.suffix.lower() == ".gz"
            remedy = "." if gzipped else f", for instance: iconv -f CP1252 -t UTF-8 {shlex.quote(path.name)} > utf8.txt"
            raise WonderlandError(
                f"{path} is not UTF-8 text: byte 0x{byte:02x} at offset {place:,}. Save it as UTF-8{remedy}"
            )
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def _lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """Lines that are not blank, with their numbers."""
        number, rest, longest = 0, "", limit("line_bytes")
        for block in self._blocks(path):
            parts = (rest + block).split("\n")
            rest = parts.pop()
            if len(rest) > longest:
                raise beyond("line_bytes", f"{path}: line {number + len(parts) + 1}")
            for line in parts:
                number += 1
                if line.strip():
                    yield number, line
        if rest.strip():
            yield number + 1, rest

    def _json_lines(self, path: Path) -> Iterator[str]:
        for number, line in self._lines(path):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else "too deep or too long"
                raise WonderlandError(f"{path}: line {number} is not valid JSON ({reason}).") from error
            if isinstance(record, str) and self.column is None:
                yield record
                continue
            if not isinstance(record, dict):
                raise WonderlandError(f"{path}: line {number} holds no object and no text. Write one object a line.")
            name = self.column or next((name for name in TEXT_FIELDS if name in record), None)
            if name is None or name not in record:
                raise _unknown_field(name, list(record), f"{path}: line {number}")
            if not isinstance(record[name], str):
                raise WonderlandError(
                    f"{path}: line {number} has no text in {name!r}, but {json.dumps(record[name])[:40]}."
                )
            yield record[name]

    def _column_cells(self, path: Path) -> Iterator[str]:
        lines = (line + "\n" for block in self._rows(path) for line in block)
        head: list[str] = []
        for line in lines:
            head.append(line)
            if len(head) >= 200:
                break
        sample = "".join(head)
        delimiter = "\t" if _suffix(path) == ".tsv" else find_delimiter(sample)
        delimiter = delimiter if len(delimiter) == 1 else ","
        reader = csv.reader(
            itertools.chain(head, lines), delimiter=delimiter, strict=True, skipinitialspace=delimiter != "\t"
        )
        first = list(csv.reader(head[:50], delimiter=delimiter))
        with_header = bool(first) and has_header([row for row in first if row])
        try:
            names = [cell.strip() for cell in next(reader)] if with_header else [f"c{i}" for i in range(len(first[0]))]
            at = self._column_index(names, path)
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
        rest = ""
        for block in self._blocks(path):
            parts = (rest + block).split("\n")
            rest = parts.pop()
            yield parts
        yield [rest] if rest else []

    def _column_index(self, names: list[str], path: Path) -> int:
        name = self.column or next(
            (name for name in TEXT_FIELDS if name in names), names[0] if len(names) == 1 else None
        )
        if name is None or name not in names:
            raise _unknown_field(name, names, str(path))
        return names.index(name)


def read_documents(
    source: str | Path, *, column: str | None = None, lines: bool = False, strict: bool = False
) -> Documents:
    """The documents of a text file, a folder of text files, JSON lines or a column of a CSV file, also ggzipped.

    Args:
        source: a file or a folder. A text file is one document; so is each file of a folder.
        column: the field or column that holds the text (by default "text", "content" or another of `TEXT_FIELDS`).
        lines: each line of a text file is a document of its own.
        strict: stop at the first byte that is not UTF-8, instead of replacing a few.
    """
    path = Path(source).expanduser()
    try:
        exists = path.exists()
    except (OSError, ValueError):
        exists = False
    if not exists:
        neighbours = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise WonderlandError(f"There is no file or folder {path}.{nearest(path.name, neighbours)}")
    documents = Documents(path, column, lines, strict)
    if not path.is_dir():
        if _suffix(path) == ".parquet":
            raise WonderlandError(f"{path}: text is read from text files, JSON lines and CSV, not from Parquet.")
        documents.files = [path]
        return documents
    for folder, folders, names in os.walk(path):
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=natural)
        for name in sorted(names, key=natural):
            file = Path(folder) / name
            if name.startswith("."):
                continue
            if _suffix(file) in (*TEXTS, *JSON_LINES) and file.is_file() and not file.is_symlink():
                documents.files.append(file)
            else:
                documents.skipped += 1
    if not documents.files:
        others = f"; {counted(documents.skipped, 'file is', 'files are')} of another kind" if documents.skipped else ""
        raise WonderlandError(f"{path} holds no text files ({', '.join(TEXTS)}){others}.")
    return documents


def cut(blocks: Iterable[str], size: int = PIECE_SIZE) -> Iterator[tuple[str, bool]]:
    """Blocks of one document as pieces of about `size` characters, cut before a space so that no token is cut.

    A piece ends before a space or a line end that follows another character. Text that has none within four times `size` is
    cut at that length.

    >>> [piece for piece, _ in cut(["one two three"], size=6)]
    ['one', ' two', ' three']
    """
    text = ""
    for block in blocks:
        text += block
        start = 0
        while len(text) - start > 4 * size or (len(text) - start > size and _last_break(text, start, start + size)):
            stop = (
                _last_break(text, start, start + size) or _last_break(text, start, start + 4 * size) or start + 4 * size
            )
            yield text[start:stop], False
            start = stop
        text = text[start:]
    yield text, True


def _last_break(text: str, start: int, stop: int) -> int | None:
    """The last index in text[start:stop] of a space that follows a character that is not one; None if there is none."""
    for mark in (" ", "\n"):
        at = text.rfind(mark, start + 1, stop)
        while at > start and text[at - 1].isspace():
            at = text.rfind(mark, start + 1, at)
        if at > start:
            return at
    return None


def _as_pieces(texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Documents that are in memory, as pieces; only long ones are cut."""
    for text in texts:
        if len(text) <= PIECE_SIZE:
            yield text, True
        else:
            yield from cut([text], PIECE_SIZE)


def _read_blocks(path: Path) -> Iterator[bytes]:
    try:
        with open_unpacked(path) as file:
            while data := file.read(BLOCK_SIZE):
                yield data
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror}).") from error


def _refuse_binary(data: bytes, path: Path, offset: int) -> None:
    if offset == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise WonderlandError(f"{path} is UTF-16 text. Save it as UTF-8.")
    at = data.find(b"\0")
    if at >= 0:
        raise WonderlandError(f"{path} is not text: there is a zero byte at offset {offset + at:,}.")


def _unknown_field(name: str | None, names: list[str], where: str) -> WonderlandError:
    known = ", ".join(repr(key) for key in names[:8])
    if name is None:
        return WonderlandError(
            f"{where} has no field {TEXT_FIELDS[0]!r}: name the one that holds the text with the option column. It has {known}."
        )
    return WonderlandError(f"{where} has no field {name!r}.{nearest(name, names) or f' It has {known}.'}")


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffixes = suffixes[:-1] if suffixes[-1:] == [".gz"] else suffixes
    return suffixes[-1] if suffixes else ""


def is_text_file(path: Any) -> bool:
    """Whether a file is plain text by its name.

    >>> is_text_file("a.txt"), is_text_file("a.md.gz"), is_text_file("a.csv")
    (True, True, False)
    """
    return _suffix(Path(path)) in TEXTS
