"""Read a table file into a frame: CSV and its variants, JSON lines, Parquet. Errors name the line."""

import csv
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.core.limits import beyond, check, limit
from wonderland.core.unpack import read_unpacked
from wonderland.data.cells import MISSING
from wonderland.data.dataset import Finding
from wonderland.data.parquet import read_parquet

SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data", ".parquet", ".jsonl", ".ndjson")
DELIMITERS = (",", ";", "\t", "|")
WHITESPACE = r"\s+"

_MISSING_SPELLINGS = sorted(
    {form for word in MISSING for form in (word, word.upper(), word.title(), word.capitalize())} | {"NaN", "NaT"}
)
_RAGGED_ADVICE = "Quote cells that hold the delimiter, or complete the line."
_CONTROL = re.compile(rb"[\x01-\x08\x0b\x0e-\x1f\x7f]")
_QUOTED = re.compile(rb'"[^"]*"')
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+")
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+")


def read_file(path: Path, as_text: Collection[str] = ()) -> tuple[pd.DataFrame, list[Finding]]:
    """A file as a frame with unique column names, and findings.

    Columns named in `as_text` keep their cells as they are written (a category "007" stays "007").
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if gzipped else suffixes)[-1:]
    if not suffix or suffix[0] not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise WonderlandError(f"{path}: this kind of file is not known. Known are {known}, and folders of images.")
    if suffix[0] == ".parquet":
        frame = read_parquet(path)
        check_names(list(frame.columns), path)
        return frame, []
    data = read_bytes(path)
    if suffix[0] in (".jsonl", ".ndjson"):
        return read_json_lines(data, path), []
    return read_csv(data, path, as_text)


def read_bytes(path: Path) -> bytes:
    """The whole file, unpacked if it is gzipped, and never more than the limit."""
    data = read_unpacked(path, "table_bytes")
    if not data.strip():
        raise WonderlandError(f"{path} is empty. Give a file that holds rows.")
    return data


def read_csv(data: bytes, path: Path, as_text: Collection[str] = ()) -> tuple[pd.DataFrame, list[Finding]]:
    """Text in columns; the delimiter and whether there is a header are read from the first lines."""
    data = utf8(data, path)
    sample = _sample(data)
    delimiter = find_delimiter(sample)
    records = list(_records(sample, delimiter))[:200]
    if not records:
        raise WonderlandError(f"{path} does not look like a table: no line with cells was found at its beginning.")
    with_header = has_header(records)
    names = [cell.strip() for cell in records[0]] if with_header else [f"c{i}" for i in range(len(records[0]))]
    check_names(names, path)
    names = [name or f"column_{i}" for i, name in enumerate(names)]
    if with_header and len(records) == 1:
        raise WonderlandError(f"{path} has a header line and no rows. Add rows, or give another file.")
    fault = find_ragged(data, delimiter, len(names))
    if fault:
        raise WonderlandError(f"{path}: {fault}")
    frame = _parse(data, path, delimiter, names, with_header, records, as_text)
    if with_header:
        return frame, []
    text = f"The first line of {path.name} holds values, not names: the columns are called c0 to c{len(names) - 1}."
    return frame, [Finding("header", path.name, len(names), text)]


def utf8(data: bytes, path: Path) -> bytes:
    """The bytes, checked to be UTF-8 text, without a byte order mark and with plain line ends."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise WonderlandError(f"{path} is UTF-16 text. Save it as UTF-8.")
    at = data.find(b"\0")
    if at >= 0:
        raise WonderlandError(
            f"{path} is not text: there is a zero byte at offset {at} (line {_line_number(data, at)})."
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        remedy = "."
        if path.suffix.lower() != ".gz" and not _CONTROL.search(data):
            output = f"utf8{path.suffix.lower()}"
            remedy = f", for instance: iconv -f CP1252 -t UTF-8 {shlex.quote(path.name)} > {output}"
        raise WonderlandError(
            f"{path} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start} (line "
            f"{_line_number(data, error.start)}). Save it as UTF-8{remedy}"
        ) from error
    data = data.removeprefix(b"\xef\xbb\xbf")
    return data.replace(b"\r", b"\n") if b"\r" in data and b"\n" not in data else data


def find_delimiter(sample: str) -> str:
    """The delimiter under which the first records agree best on their number of fields.

    >>> find_delimiter("a;b;c\\n1,5;2;3\\n")
    ';'
    """
    scores = {}
    for delimiter in DELIMITERS:
        widths = [len(record) for record in list(_records(sample, delimiter))[:50]]
        agreeing = sum(width == widths[0] for width in widths) / len(widths) if widths else 0
        scores[delimiter] = (
            (widths[0] > 1 and agreeing > 0.5, round(agreeing, 1), widths[0]) if widths else (False, 0, 0)
        )
    best = max(DELIMITERS, key=lambda delimiter: scores[delimiter])
    if scores[best][0]:
        return best
    lines = [line.split() for line in sample.splitlines()[:50] if line.strip()]
    if (
        lines
        and len(lines[0]) > 1
        and all(len(line) == len(lines[0]) and all(map(is_number, line)) for line in lines[1:])
    ):
        return WHITESPACE
    widest = max(DELIMITERS, key=lambda delimiter: scores[delimiter][2])
    return widest if scores[widest][2] > 1 else ","


def has_header(records: list[list[str]]) -> bool:
    """Whether the first record holds names: it does, unless it has numbers in every column where the next records have numbers.

    >>> has_header([["a", "b"], ["1", "x"]]), has_header([["5.1", "setosa"], ["4.9", "setosa"]])
    (True, False)
    """
    first, rest = records[0], records[1:]
    if all(is_number(cell) for cell in first):
        return False
    numeric = [
        i
        for i in range(len(first))
        if any(is_number(r[i]) for r in rest if i < len(r))
        and all(is_number(r[i]) or _is_missing(r[i]) for r in rest if i < len(r))
    ]
    if not numeric or not all(is_number(first[i]) for i in numeric):
        return True
    cells = [float(first[i]) for i in numeric]
    return len(cells) > 1 and all(
        after - before == 1 for before, after in pairwise(cells)
    )  # a row of consecutive years is a header


def check_names(names: list[str], where: Any) -> None:
    """Refuse names that occur twice, and tables wider than the limit."""
    check("table_columns", len(names), where)
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        places = ", ".join(str(i + 1) for i, name in enumerate(names) if name == twice[0])
        raise WonderlandError(f"{where} has more than one column named {twice[0]!r} (columns {places}). Rename them.")


def find_ragged(data: bytes, delimiter: str, width: int) -> str:
    """The first line with too few or too many fields, in words; "" when every line has `width` of them.

    Delimiters are counted in bulk first; only when a count is wrong are the records read one by one.

    >>> find_ragged(b"a,b\\n1,2\\n3\\n", ",", 2)
    'line 3 has 1 field where 2 are expected. Quote cells that hold the delimiter, or complete the line.'
    """
    if delimiter != WHITESPACE and _counts_agree(data, ord(delimiter), width - 1):
        return ""
    reader = _reader(data.decode("utf-8"), delimiter)
    start = 1
    try:
        for record in reader:
            if len(record) != width and "".join(record).strip():
                fields = "1 field" if len(record) == 1 else f"{len(record)} fields"
                return f"line {start} has {fields} where {width} {'is' if width == 1 else 'are'} expected. {_RAGGED_ADVICE}"
            start = reader.line_num + 1
    except csv.Error as error:
        if "unexpected end" in str(error):
            return f"the quoted cell that starts on line {start} is never closed."
        if "field larger" in str(error):
            return f"a cell on line {start} holds more than {csv.field_size_limit():,} characters: is a quote missing?"
        return f"line {start} cannot be read ({error})."
    return ""


def read_json_lines(data: bytes, path: Path) -> pd.DataFrame:
    """One JSON object a line; keys are the columns."""
    records, names, written, most = [], {}, 0, limit("table_columns")
    for number, line in enumerate(utf8(data, path).decode("utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_int=lambda text: int(text) if len(text) < 19 else float(text))
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "too deep or too long"
            raise WonderlandError(f"{path}: line {number} is not valid JSON ({reason}).") from error
        if not isinstance(record, dict):
            raise WonderlandError(f"{path}: line {number} holds {_json_type(record)} where an object is expected.")
        for key, value in record.items():
            if isinstance(value, list | dict):
                raise WonderlandError(
                    f"{path}: line {number} has {_json_type(value)} in {key!r}. Unpack nested values into plain columns."
                )
        if "\\ud" in line.lower() and not _is_valid_unicode(record):
            raise WonderlandError(f"{path}: line {number} holds half of a character (a lone surrogate).")
        records.append(record)
        names |= dict.fromkeys(record)
        written += len(record)
        if len(names) > most:
            raise beyond("table_columns", path)
    check("empty_cells", len(records) * len(names) - 16 * written, f"{path}, where most records lack most keys,")
    check_names(list(names), path)
    return pd.DataFrame.from_records(records, columns=list(names))


def _is_valid_unicode(record: dict[str, Any]) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def unknown_file(path: Path, names: Collection[str]) -> WonderlandError:
    """The error for a source that is neither a file nor a bundled name."""
    known = ", ".join(sorted(names))
    try:
        neighbours = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        neighbours = []
    hint = nearest(str(path), names) or nearest(path.name, neighbours)
    return WonderlandError(
        f"There is no file or folder {path}, and no bundled set of that name.{hint} Bundled are {known}."
    )


def _parse(
    data: bytes,
    path: Path,
    delimiter: str,
    names: list[str],
    with_header: bool,
    records: list[list[str]],
    as_text: Collection[str],
) -> pd.DataFrame:
    try:
        return pd.read_csv(
            io.BytesIO(data),
            sep=delimiter,
            header=0 if with_header else None,
            names=names,
            dtype={name: str for name in names if name in as_text},
            na_values=_MISSING_SPELLINGS,
            keep_default_na=False,
            low_memory=False,
            skipinitialspace=delimiter != WHITESPACE,
            decimal="," if delimiter == ";" and _has_decimal_comma(records) else ".",
            encoding="utf-8",
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, OverflowError) as error:
        raise WonderlandError(f"{path} cannot be read as a table ({str(error).strip()}).") from error


def _counts_agree(data: bytes, delimiter: int, expected: int) -> bool:
    """Whether every line holds `expected` delimiters outside quotes, counted in bulk: each
    `expected` delimiters are followed by one line end."""
    if b'"' in data:
        data = _QUOTED.sub(b"", data)
        if b'"' in data:
            return False
    codes = np.frombuffer(data.rstrip(b"\r\n") + b"\n", np.uint8)
    events = (codes == delimiter) | (codes == 10)
    ends = codes[events] == 10
    if len(ends) % (expected + 1):
        return False
    lines = ends.reshape(-1, expected + 1)
    return bool(lines[:, -1].all() and not lines[:, :-1].any())


def _sample(data: bytes, size: int = 1 << 18) -> str:
    """The first lines as text, cut at a line end."""
    head = data[:size]
    if len(data) > size:
        end = head.rfind(b"\n") + 1
        head = head[:end] if end else data
    return head.decode("utf-8", errors="ignore")


def _reader(text: str, delimiter: str) -> Any:
    if delimiter == WHITESPACE:
        return _WhitespaceReader(text)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)


class _WhitespaceReader:
    """The interface of csv.reader for fields between whitespace."""

    def __init__(self, text: str) -> None:
        self.line_num = 0
        self.lines = text.splitlines()

    def __iter__(self) -> Iterator[list[str]]:
        for line in self.lines:
            self.line_num += 1
            yield line.split()


def _records(text: str, delimiter: str) -> Iterator[list[str]]:
    try:
        for record in _reader(text, delimiter):
            if "".join(record).strip():
                yield record
    except csv.Error:
        return


def _has_decimal_comma(records: list[list[str]]) -> bool:
    cells = [cell.strip() for record in records[1:] for cell in record]
    commas = sum(bool(_COMMA_NUMBER.fullmatch(cell)) for cell in cells)
    return commas > sum(bool(_POINT_NUMBER.fullmatch(cell)) for cell in cells)


def _is_missing(cell: str) -> bool:
    return cell.strip().casefold() in MISSING


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.strip().casefold() not in ("nan", "inf", "infinity")


def _json_type(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return "null" if value is None else f"{json.dumps(value)[:20]}"


def _line_number(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
