"""Read a table file into a frame: text in columns, JSON, Parquet, Feather, workbooks, databases, packed or not. Errors name the line."""

import csv
import io
import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.unpack import read_unpacked
from wonderland.data.bounds import check_names
from wonderland.data.cells import MISSING
from wonderland.data.dataset import Finding, counted
from wonderland.data.encodings import to_utf8
from wonderland.data.feather import read_feather
from wonderland.data.json_table import JSON_START, looks_like_json, read_json, read_json_lines
from wonderland.data.parquet import read_parquet
from wonderland.data.reading import Reading
from wonderland.data.sql import SUFFIXES as DATABASES
from wonderland.data.sql import read_sqlite
from wonderland.data.workbook import read_workbook

WORKBOOKS = (".xlsx", ".xlsm")
TEXTS = (".csv", ".tsv", ".txt", ".dat", ".data")
SUFFIXES = (*TEXTS, ".json", ".jsonl", ".ndjson", ".parquet", ".feather", *WORKBOOKS, *DATABASES)
DELIMITERS = (",", ";", "\t", "|")
WHITESPACE = r"\s+"
COMMENTS = ("#", "%", "//")

_MISSING_SPELLINGS = sorted(
    {form for word in MISSING for form in (word, word.upper(), word.title(), word.capitalize())} | {"NaN", "NaT"}
)
_RAGGED_ADVICE = "Quote cells that hold the delimiter, or complete the line."
_QUOTE_ADVICE = "Close the quote, or say --quote none where quotes are plain characters."
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+")
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+")
_LONG_INTEGER = re.compile(r"[+-]?\d{16,}")

__all__ = ["DELIMITERS", "SUFFIXES", "check_names", "read_file"]


def read_file(
    path: Path, as_text: Collection[str] = (), reading: Reading | None = None
) -> tuple[pd.DataFrame, list[Finding]]:
    """A file as a frame with unique column names, and findings.

    Columns named in `as_text` keep their cells as they are written (a category "007" stays "007").
    """
    reading = reading or Reading()
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    suffix = "".join((suffixes[:-1] if gzipped else suffixes)[-1:])
    if suffix == ".zip" and not gzipped:
        from wonderland.data.several import read_zip

        return read_zip(path, as_text, reading)
    if suffix not in SUFFIXES:
        if path.is_file() and looks_like_json(path):
            return read_text(read_bytes(path), path, ".json", as_text, reading)
        if reading.delimiter is not None:
            return read_text(read_bytes(path), path, ".csv", as_text, reading)
        known = ", ".join((*SUFFIXES, ".zip"))
        raise WonderlandError(
            f"{path}: this kind of file is not known. Known are {known}, with .gz as well, and folders of images. A text file of "
            "another name is read as a table where its delimiter is named (--delimiter)."
        )
    if suffix in (*WORKBOOKS, *DATABASES, ".parquet", ".feather"):
        if gzipped:
            raise WonderlandError(f"{path}: a {suffix} file is read as it is, not packed: unpack it first (gunzip).")
        if suffix in WORKBOOKS:
            return read_workbook(path, reading.sheet)
        if suffix in DATABASES:
            return read_sqlite(path, reading.sheet), []
        frame = (read_parquet if suffix == ".parquet" else read_feather)(path)
        check_names(list(frame.columns), path)
        return frame, []
    return read_text(read_bytes(path), path, suffix, as_text, reading)


def read_text(
    data: bytes, path: Path, suffix: str, as_text: Collection[str], reading: Reading
) -> tuple[pd.DataFrame, list[Finding]]:
    """The bytes of a text file as a frame, by its suffix."""
    data, findings = to_utf8(data, path, reading.encoding)
    if not data.strip():
        raise WonderlandError(f"{path} is empty. Give a file that holds rows.")
    if suffix == ".txt" and JSON_START.match(data):
        suffix = ".json"
    if suffix in (".jsonl", ".ndjson", ".json"):
        read = read_json if suffix == ".json" else read_json_lines
        return read(data.decode("utf-8", "surrogatepass"), path), findings
    frame, further = read_csv(data, path, as_text, reading)
    return frame, findings + further


def read_bytes(path: Path) -> bytes:
    """The whole file, unpacked if it is gzipped, and never more than the limit."""
    data = read_unpacked(path, "table_bytes")
    if not data.strip():
        raise WonderlandError(f"{path} is empty. Give a file that holds rows.")
    return data


def read_csv(data: bytes, path: Path, as_text: Collection[str], reading: Reading) -> tuple[pd.DataFrame, list[Finding]]:
    """UTF-8 text in columns; the delimiter and whether there is a header are read from the first lines."""
    findings: list[Finding] = []
    data, said = _without_separator_line(data)
    delimiter, quote = reading.separator or said, reading.quote_character
    data, comments = without_comments(data, delimiter, quote)
    if comments:
        lines = counted(comments, "line before the header is a comment", "lines before the header are comments")
        findings.append(Finding("comments", path.name, comments, f"{path.name}: {lines}, skipped."))
    sample = _sample(data)
    delimiter = delimiter or find_delimiter(sample, quote)
    records = list(_records(sample, delimiter, quote))[:200]
    if not records and quote:
        records = list(_records(sample, delimiter, ""))[:200]  # the fault is named below, with its line
    if not records:
        raise WonderlandError(f"{path} does not look like a table: no line with cells was found at its beginning.")
    with_header = has_header(records)
    names = [cell.strip() for cell in records[0]] if with_header else [f"c{i}" for i in range(len(records[0]))]
    check_names(names, path)
    names = [name or f"column_{i}" for i, name in enumerate(names)]
    fault = find_ragged(data, delimiter, len(names), quote, comments)
    if with_header and len(records) == 1 and not fault:
        if len(data) > len(sample.encode()) or max(map(len, sample.splitlines())) > csv.field_size_limit():
            raise WonderlandError(
                f"{path}: a cell on line {2 + comments} holds more than {csv.field_size_limit():,} characters. Shorten it, "
                "or leave its column out."
            )
        raise WonderlandError(f"{path} has a header line and no rows. Add rows, or give another file.")
    if fault and delimiter == "\t" and reading.quote is None and not find_ragged(data, delimiter, len(names), ""):
        quote, fault = "", ""
        text = f"{path.name}: quotes are read as plain characters, since not all of them are closed."
        findings.append(Finding("quotes", path.name, 1, text))
    if fault:
        raise WonderlandError(f"{path}: {fault}")
    frame = _parse(data, path, delimiter, quote, names, with_header, records, as_text)
    if not with_header:
        text = f"The first line of {path.name} holds values, not names: the columns are called c0 to c{len(names) - 1}."
        findings.append(Finding("header", path.name, len(names), text))
    return frame, findings


def _without_separator_line(data: bytes) -> tuple[bytes, str | None]:
    """The text without a first line "sep=;", by which spreadsheets name the delimiter, and that delimiter."""
    match = re.match(rb"sep=(.)\r?\n", data[:10])
    return (data[match.end() :], match.group(1).decode("latin-1")) if match else (data, None)


def without_comments(data: bytes, delimiter: str | None = None, quote: str = '"') -> tuple[bytes, int]:
    """The text without comment lines before the header, and how many there were. A header after "#" is no comment.

    >>> without_comments(b"# made by a probe\\n#\\na,b\\n1,2\\n")
    (b'a,b\\n1,2\\n', 2)
    >>> without_comments(b"#a,b\\n1,2\\n")
    (b'a,b\\n1,2\\n', 0)
    """
    start, last, skipped = 0, 0, 0
    while (mark := next((mark for mark in COMMENTS if data.startswith(mark.encode(), start)), None)) is not None:
        end = data.find(b"\n", start)
        if end < 0:
            break
        last, start, skipped = start + len(mark), end + 1, skipped + 1
        while data.startswith((b"\n", b"\r\n"), start):
            start = data.find(b"\n", start) + 1
    if not skipped:
        return data, 0
    rest = _sample(data[last : last + (1 << 18)])
    separator = delimiter or find_delimiter(_sample(data[start : start + (1 << 18)]), quote)
    records = list(_records(rest, separator, quote))[:50]
    is_header = data[last : data.find(b"\n", last)].strip() != b"" and len(records) > 1 and len(records[0]) == len(records[1]) > 1 and has_header(records) and (
        not has_header(records[1:])
    )  # fmt: skip
    if is_header:
        return data[last:].lstrip(b" "), skipped - 1
    return data[start:], skipped


def find_delimiter(sample: str, quote: str = '"') -> str:
    """The delimiter under which the first records agree best on their number of fields.

    >>> find_delimiter("a;b;c\\n1,5;2;3\\n")
    ';'
    """
    scores = {}
    for delimiter in DELIMITERS:
        widths = [len(record) for record in list(_records(sample, delimiter, quote))[:50]]
        agreeing = sum(width == widths[0] for width in widths) / len(widths) if widths else 0
        scores[delimiter] = (
            (widths[0] > 1 and agreeing > 0.5, round(agreeing, 1), widths[0]) if widths else (False, 0, 0)
        )
    best = max(DELIMITERS, key=lambda delimiter: scores[delimiter])
    if scores[best][0]:
        return best
    if _in_columns_of_blanks(sample):
        return WHITESPACE
    widest = max(DELIMITERS, key=lambda delimiter: scores[delimiter][2])
    return widest if scores[widest][2] > 1 else ","


def _in_columns_of_blanks(sample: str) -> bool:
    """Whether blanks divide every line into as many fields: numbers, or at least three of which one is a number."""
    names, *lines = [line.split() for line in sample.splitlines()[:50] if line.strip()] or [[]]
    if len(names) < 2 or any(len(line) != len(names) for line in lines):
        return False
    numbers = [sum(map(is_number, line)) for line in lines]
    return min(numbers, default=len(names)) == len(names) or (len(names) > 2 and len(lines) > 2 and min(numbers) > 0)


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
    if not numeric:
        return not _repeats(first, rest)
    if not all(is_number(first[i]) for i in numeric):
        return True
    cells = [float(first[i]) for i in numeric]
    return len(cells) > 1 and all(
        after - before == 1 for before, after in pairwise(cells)
    )  # a row of consecutive years is a header


def _repeats(first: list[str], rest: list[list[str]]) -> bool:
    """Whether a cell of the first record comes again and again in its column, as a name of the column would not."""
    for i, cell in enumerate(first):
        again = sum(row[i].strip() == cell.strip() for row in rest if i < len(row))
        if cell.strip() and again > max(2, 0.02 * len(rest)):
            return True
    return False


def find_ragged(data: bytes, delimiter: str, width: int, quote: str = '"', skipped: int = 0) -> str:
    """The first line with too few or too many fields, in words; "" when every line has `width` of them.

    Delimiters are counted in bulk first; only when a count is wrong are the records read one by one. `skipped` lines came before.

    >>> find_ragged(b"a,b\\n1,2\\n3\\n", ",", 2)
    'line 3 has 1 field where 2 are expected. Quote cells that hold the delimiter, or complete the line.'
    """
    if delimiter != WHITESPACE and _counts_agree(data, ord(delimiter), width - 1, quote):
        return ""
    reader = _reader(data.decode("utf-8", "surrogatepass"), delimiter, quote)
    start = 1 + skipped
    try:
        for record in reader:
            if len(record) != width and "".join(record).strip():
                fields = "1 field" if len(record) == 1 else f"{len(record)} fields"
                return f"line {start} has {fields} where {width} {'is' if width == 1 else 'are'} expected. {_RAGGED_ADVICE}"
            start = reader.line_num + 1 + skipped
    except csv.Error as error:
        if "unexpected end" in str(error):
            return f"the quoted cell that starts on line {start} is never closed. {_QUOTE_ADVICE}"
        if "field larger" in str(error):
            return f"a cell on line {start} holds more than {csv.field_size_limit():,} characters: is a quote missing? {_QUOTE_ADVICE}"
        return f"line {start} cannot be read ({error}). {_QUOTE_ADVICE}"
    return ""


def _parse(
    data: bytes,
    path: Path,
    delimiter: str,
    quote: str,
    names: list[str],
    with_header: bool,
    records: list[list[str]],
    as_text: Collection[str],
) -> pd.DataFrame:
    options: dict[str, Any] = {
        "sep": delimiter,
        "header": 0 if with_header else None,
        "names": names,
        "na_values": _MISSING_SPELLINGS,
        "keep_default_na": False,
        "low_memory": False,
        "skipinitialspace": delimiter != WHITESPACE,
        "decimal": "," if delimiter == ";" and _has_decimal_comma(records) else ".",
        "encoding": "utf-8",
        "encoding_errors": "surrogatepass",
        **({"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}),
    }
    try:
        frame = pd.read_csv(io.BytesIO(data), dtype={name: str for name in names if name in as_text}, **options)
        inexact = [name for name in names if name not in as_text and _may_be_inexact(frame[name])]
        if inexact:
            written = pd.read_csv(io.BytesIO(data), dtype=str, usecols=inexact, **options)
            for name in inexact:
                if _are_long_integers(written[name]):
                    frame[name] = written[name]
        return frame
    except (pd.errors.ParserError, pd.errors.EmptyDataError, OverflowError, UnicodeError) as error:
        raise WonderlandError(f"{path} cannot be read as a table ({str(error).strip()}).") from error


def _may_be_inexact(cells: pd.Series) -> bool:
    """Whether numbers were read as floats that may be integers too large for them."""
    if cells.dtype.kind != "f":
        return False
    values = cells.to_numpy()
    large = np.abs(values[np.isfinite(values)]) >= 2**53
    return bool(large.any())


def _are_long_integers(written: pd.Series) -> bool:
    """Whether every cell that is present is an integer in digits, some of them with more than a float can hold."""
    present = written.dropna().str.strip()
    long = present.str.fullmatch(_LONG_INTEGER.pattern)
    return bool(long.any()) and bool(present[~long].str.fullmatch(r"[+-]?\d+").all())


def _counts_agree(data: bytes, delimiter: int, expected: int, quote: str = '"') -> bool:
    """Whether every line holds `expected` delimiters outside quotes, counted in bulk: each
    `expected` delimiters are followed by one line end."""
    mark = quote.encode()
    if mark and mark in data:
        escaped = re.escape(mark)
        data = re.sub(escaped + b"[^" + escaped + b"]*" + escaped, b"", data)
        if mark in data:
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


def _reader(text: str, delimiter: str, quote: str = '"') -> Any:
    if delimiter == WHITESPACE:
        return _WhitespaceReader(text)
    options: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    lines = io.StringIO(text, newline="")
    return csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True, **options)


class _WhitespaceReader:
    """The interface of csv.reader for fields between whitespace."""

    def __init__(self, text: str) -> None:
        self.line_num = 0
        self.lines = text.splitlines()

    def __iter__(self) -> Iterator[list[str]]:
        for line in self.lines:
            self.line_num += 1
            yield line.split()


def _records(text: str, delimiter: str, quote: str = '"') -> Iterator[list[str]]:
    try:
        for record in _reader(text, delimiter, quote):
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
    """Whether a cell is a finite number as Python writes it."""
    try:
        float(cell)
    except ValueError:
        return False
    return cell.strip().casefold() not in ("nan", "inf", "infinity")
