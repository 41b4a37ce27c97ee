"""From a file to a frame: CSV and its relatives, JSON lines, Parquet. Every fault is named with its line."""

import csv
import gzip
import io
import json
import re
import shlex
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest, need, open_plain
from wonderland.data.cells import MISSING
from wonderland.data.dataset import Finding

MAX_BYTES = 4 << 30
MAX_COLUMNS = 10_000
SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data", ".parquet", ".jsonl", ".ndjson")
DELIMITERS = (",", ";", "\t", "|")
BLANKS = r"\s+"

_MARKERS = sorted(
    {form for word in MISSING for form in (word, word.upper(), word.title(), word.capitalize())} | {"NaN", "NaT"}
)
_MEND = "Quote cells that hold the delimiter, or complete the line."
_CONTROL = re.compile(rb"[\x01-\x08\x0b\x0e-\x1f\x7f]")
_QUOTED = re.compile(rb'"[^"]*"')
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+")
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+")


def read_file(path: Path, as_text: Collection[str] = ()) -> tuple[pd.DataFrame, list[Finding]]:
    """A file as a frame with unique column names, and what was noticed.

    Columns named in `as_text` keep their cells as they are written (a category "007" stays "007").
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if zipped else suffixes)[-1:]
    if not suffix or suffix[0] not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise WonderlandError(f"{path}: this kind of file is not known. Known are {known}, and folders of images.")
    if suffix[0] == ".parquet":
        return read_parquet(path), []
    data = read_bytes(path, zipped)
    if suffix[0] in (".jsonl", ".ndjson"):
        return read_json_lines(data, path), []
    return read_csv(data, path, as_text)


def read_bytes(path: Path, zipped: bool) -> bytes:
    """The whole file, unzipped when it is zipped, and never more than the limit."""
    try:
        with open_plain(path) as plain, gzip.open(plain, "rb") if zipped else plain as file:
            data = file.read(MAX_BYTES + 1) if zipped or path.stat().st_size <= MAX_BYTES else None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise WonderlandError(f"{path} is not a whole gzip file: it is damaged or cut short.") from error
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror}).") from error
    if data is None or len(data) > MAX_BYTES:
        raise WonderlandError(
            f"{path} is larger than {MAX_BYTES >> 30} GiB, the limit for a table. Take a sample of its rows."
        )
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
    headed = has_header(records)
    names = [cell.strip() for cell in records[0]] if headed else [f"c{i}" for i in range(len(records[0]))]
    check_names(names, path)
    names = [name or f"column_{i}" for i, name in enumerate(names)]
    if headed and len(records) == 1:
        raise WonderlandError(f"{path} has a header line and no rows. Add rows, or give another file.")
    fault = find_ragged(data, delimiter, len(names))
    if fault:
        raise WonderlandError(f"{path}: {fault}")
    frame = _parse(data, path, delimiter, names, headed, records, as_text)
    if headed:
        return frame, []
    text = f"The first line of {path.name} holds values, not names: the columns are called c0 to c{len(names) - 1}."
    return frame, [Finding("header", path.name, len(names), text)]


def utf8(data: bytes, path: Path) -> bytes:
    """The bytes, proven to be UTF-8 text, without a byte order mark and with plain line ends."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise WonderlandError(f"{path} is UTF-16 text. Save it as UTF-8.")
    at = data.find(b"\0")
    if at >= 0:
        raise WonderlandError(f"{path} is not text: there is a zero byte at offset {at} (line {_line(data, at)}).")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        remedy = "."
        if path.suffix.lower() != ".gz" and not _CONTROL.search(data):
            made = f"utf8{path.suffix.lower()}"
            remedy = f", for instance: iconv -f CP1252 -t UTF-8 {shlex.quote(path.name)} > {made}"
        raise WonderlandError(
            f"{path} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start} (line "
            f"{_line(data, error.start)}). Save it as UTF-8{remedy}"
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
        and all(len(line) == len(lines[0]) and all(map(_is_number, line)) for line in lines[1:])
    ):
        return BLANKS
    widest = max(DELIMITERS, key=lambda delimiter: scores[delimiter][2])
    return widest if scores[widest][2] > 1 else ","


def has_header(records: list[list[str]]) -> bool:
    """Whether the first record holds names: it does unless it has numbers wherever the next records have numbers.

    >>> has_header([["a", "b"], ["1", "x"]]), has_header([["5.1", "setosa"], ["4.9", "setosa"]])
    (True, False)
    """
    first, rest = records[0], records[1:]
    if all(_is_number(cell) for cell in first):
        return False
    numeric = [
        i
        for i in range(len(first))
        if any(_is_number(r[i]) for r in rest if i < len(r))
        and all(_is_number(r[i]) or _is_missing(r[i]) for r in rest if i < len(r))
    ]
    if not numeric or not all(_is_number(first[i]) for i in numeric):
        return True
    cells = [float(first[i]) for i in numeric]
    return len(cells) > 1 and all(after - before == 1 for before, after in pairwise(cells))  # years


def check_names(names: list[str], where: Any) -> None:
    """Refuse names that occur twice, and tables wider than the limit."""
    if len(names) > MAX_COLUMNS:
        raise WonderlandError(f"{where} has {len(names):,} columns; the limit is {MAX_COLUMNS:,}.")
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        places = ", ".join(str(i + 1) for i, name in enumerate(names) if name == twice[0])
        raise WonderlandError(f"{where} has more than one column named {twice[0]!r} (columns {places}). Rename them.")


def find_ragged(data: bytes, delimiter: str, width: int) -> str:
    """The first line with too few or too many fields, in words; "" when every line has `width` of them.

    Delimiters are counted in bulk; only when a count is off are the records read one by one.

    >>> find_ragged(b"a,b\\n1,2\\n3\\n", ",", 2)
    'line 3 has 1 field where 2 are expected. Quote cells that hold the delimiter, or complete the line.'
    """
    if delimiter != BLANKS and _counts_agree(data, ord(delimiter), width - 1):
        return ""
    reader = _reader(data.decode("utf-8"), delimiter)
    start = 1
    try:
        for record in reader:
            if len(record) != width and "".join(record).strip():
                fields = "1 field" if len(record) == 1 else f"{len(record)} fields"
                return f"line {start} has {fields} where {width} {'is' if width == 1 else 'are'} expected. {_MEND}"
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
    records, names = [], {}
    for number, line in enumerate(utf8(data, path).decode("utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_int=lambda text: int(text) if len(text) < 19 else float(text))
        except (ValueError, RecursionError) as error:
            what = error.msg if isinstance(error, json.JSONDecodeError) else "too deep or too long"
            raise WonderlandError(f"{path}: line {number} is not valid JSON ({what}).") from error
        if not isinstance(record, dict):
            raise WonderlandError(f"{path}: line {number} holds {_json_type(record)} where an object is expected.")
        for key, value in record.items():
            if isinstance(value, list | dict):
                raise WonderlandError(
                    f"{path}: line {number} has {_json_type(value)} in {key!r}. Unpack nested values into plain columns."
                )
        if "\\ud" in line.lower() and not _is_text(record):
            raise WonderlandError(f"{path}: line {number} holds half of a character (a lone surrogate).")
        records.append(record)
        names |= dict.fromkeys(record)
        if len(names) > MAX_COLUMNS:
            raise WonderlandError(f"{path} has more than {MAX_COLUMNS:,} different keys, the limit for a table.")
    check_names(list(names), path)
    return pd.DataFrame.from_records(records, columns=list(names))


def _is_text(record: dict[str, Any]) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def read_parquet(path: Path) -> pd.DataFrame:
    """A Parquet file of plain columns."""
    parquet = need("pyarrow.parquet", extra="parquet", why="to read Parquet files")
    arrow = need("pyarrow", extra="parquet", why="to read Parquet files")
    if path.stat().st_size == 0:
        raise WonderlandError(f"{path} is empty. Give a file that holds rows.")
    try:
        with parquet.ParquetFile(path) as file:
            check_names(list(file.schema_arrow.names), path)
            for field in file.schema_arrow:
                if arrow.types.is_nested(field.type):
                    raise WonderlandError(
                        f"{path}: column {field.name!r} holds nested values. Unpack it into plain columns."
                    )
            groups = (file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
            if sum(groups) > MAX_BYTES:
                raise WonderlandError(f"{path} unpacks to more than {MAX_BYTES >> 30} GiB, the limit for a table.")
            return file.read().to_pandas(ignore_metadata=True)
    except (arrow.ArrowException, OSError) as error:
        raise WonderlandError(f"{path} is not a Parquet file, or it is damaged.") from error


def unknown_file(path: Path, names: Collection[str]) -> WonderlandError:
    """The error for a source that is neither a file nor a bundled name."""
    known = ", ".join(sorted(names))
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        beside = []
    hint = nearest(str(path), names) or nearest(path.name, beside)
    return WonderlandError(
        f"There is no file or folder {path}, and no bundled set of that name.{hint} Bundled are {known}."
    )


def _parse(
    data: bytes,
    path: Path,
    delimiter: str,
    names: list[str],
    headed: bool,
    records: list[list[str]],
    as_text: Collection[str],
) -> pd.DataFrame:
    try:
        return pd.read_csv(
            io.BytesIO(data),
            sep=delimiter,
            header=0 if headed else None,
            names=names,
            dtype={name: str for name in names if name in as_text},
            na_values=_MARKERS,
            keep_default_na=False,
            low_memory=False,
            skipinitialspace=delimiter != BLANKS,
            decimal="," if delimiter == ";" and _decimal_comma(records) else ".",
            encoding="utf-8",
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, OverflowError) as error:
        raise WonderlandError(f"{path} cannot be read as a table ({str(error).strip()}).") from error


def _counts_agree(data: bytes, delimiter: int, expected: int) -> bool:
    """Whether every line holds `expected` delimiters outside quotes, counted in bulk: after each run of `expected`
    delimiters comes a line end, and nothing else does."""
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
    if delimiter == BLANKS:
        return _BlankReader(text)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)


class _BlankReader:
    """csv.reader's manners for fields between blanks."""

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


def _decimal_comma(records: list[list[str]]) -> bool:
    cells = [cell.strip() for record in records[1:] for cell in record]
    commas = sum(bool(_COMMA_NUMBER.fullmatch(cell)) for cell in cells)
    return commas > sum(bool(_POINT_NUMBER.fullmatch(cell)) for cell in cells)


def _is_missing(cell: str) -> bool:
    return cell.strip().casefold() in MISSING


def _is_number(cell: str) -> bool:
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


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
