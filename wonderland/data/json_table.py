"""Tables as JSON: lines of objects, a list of records, columns by name, or columns, index and data apart ("split")."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.limits import beyond, check, limit
from wonderland.core.unpack import open_unpacked
from wonderland.data.bounds import check_names

JSON_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{\s*"')
MOST_IN_A_LIST = 100
MAX_LABELS = 1000
_UNPACK = "Unpack nested values into plain columns."
_LAYOUTS = 'It may hold a list of objects, an object of columns, or {"columns": [...], "data": [[...]]}.'


def looks_like_json(path: Path) -> bool:
    """Whether a file, packed or not, begins as objects of JSON do."""
    try:
        with open_unpacked(path) as file:
            return JSON_START.match(file.read(1 << 12)) is not None
    except (OSError, EOFError):
        return False


def read_json_lines(text: str, path: Path) -> pd.DataFrame:
    """One JSON object a line; keys are the columns."""

    def records() -> Iterator[dict[str, Any]]:
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            record = _parse(line, f"{path}: line {number}")
            if not isinstance(record, dict):
                raise WonderlandError(f"{path}: line {number} holds {json_type(record)} where an object is expected.")
            _check_record(record, f"{path}: line {number}", "\\ud" in line.lower())
            yield record

    return _frame_of_records(records(), path)


def read_json(text: str, path: Path) -> pd.DataFrame:
    """A JSON file that holds one table: records, columns or split; or lines of objects."""
    stripped = text.lstrip()
    if stripped.startswith("{") and len(lines := [line for line in text.split("\n") if line.strip()]) > 1:
        first = lines[0].strip()
        if first.endswith("}") and lines[1].lstrip().startswith("{"):
            return read_json_lines(text, path)
    whole = _parse(text, str(path))
    surrogates = "\\ud" in text.lower()
    if isinstance(whole, dict):  # {"data": [{...}, ...]}, with a version or a date beside it
        tables = [value for value in whole.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
        rest = [
            value for value in whole.values() if isinstance(value, list) and value and not isinstance(value[0], dict)
        ]
        whole = tables[0] if len(tables) == 1 and not rest else whole
    if isinstance(whole, list):
        return _frame_of_records(_records(whole, path, surrogates), path)
    if not isinstance(whole, dict) or not whole:
        raise WonderlandError(f"{path} holds {json_type(whole)} where a table is expected. {_LAYOUTS}")
    if isinstance(whole.get("columns"), list) and isinstance(whole.get("data"), list):
        return _split(whole["columns"], whole["data"], path, surrogates)
    return _columns(whole, path, surrogates)


def frame_of(columns: dict[str, list[Any]]) -> pd.DataFrame:
    """Columns of plain cells as a frame. Integers that a float could not hold exactly stay integers beside missing cells."""
    return pd.DataFrame({name: _series(cells) for name, cells in columns.items()})


def _may_be_labels(value: Any) -> bool:
    """Whether a value is a short list of words or whole numbers, which may be labels."""
    return (
        isinstance(value, list)
        and len(value) <= MOST_IN_A_LIST
        and all(isinstance(item, str | int) and not isinstance(item, bool) for item in value)
    )


def _joined(name: str, cells: list[Any], path: Path) -> list[Any]:
    """A column where some cells are lists of labels, as texts such as "a;b"; lists of anything else are refused."""
    row = next((i for i, cell in enumerate(cells) if isinstance(cell, list)), None)
    if row is None:
        return cells
    names = [str(item) for cell in cells if isinstance(cell, list) for item in cell]
    mark = next((mark for mark in (";", "|") if not any(mark in item for item in names)), None)
    if mark is None or len(names) < 2 * len(set(names)) or len(set(names)) > MAX_LABELS:
        raise WonderlandError(f"{path}: row {row + 1} has a list in {name!r}. {_UNPACK}")
    return [mark.join(map(str, cell)) or None if isinstance(cell, list) else cell for cell in cells]


def _series(cells: list[Any]) -> pd.Series:
    if any(isinstance(cell, int) and not isinstance(cell, bool) and abs(cell) > 2**53 for cell in cells):
        return pd.Series(cells, dtype=object)
    return pd.Series(cells)


def _records(entries: list[Any], path: Path, surrogates: bool) -> Iterator[dict[str, Any]]:
    for number, record in enumerate(entries, start=1):
        if not isinstance(record, dict):
            raise WonderlandError(
                f"{path}: entry {number} is {json_type(record)} where an object is expected. {_LAYOUTS}"
            )
        _check_record(record, f"{path}: entry {number}", surrogates)
        yield record


def _frame_of_records(checked: Iterable[dict[str, Any]], path: Path) -> pd.DataFrame:
    """The records as a frame; a key that a record lacks is a missing cell."""
    records: list[dict[str, Any]] = []
    names: dict[str, None] = {}
    written, most = 0, limit("table_columns")
    for record in checked:
        records.append(record)
        names |= dict.fromkeys(record)
        written += len(record)
        if len(names) > most:
            raise beyond("table_columns", path)
    check("empty_cells", len(records) * len(names) - 16 * written, f"{path}, where most records lack most keys,")
    check_names(list(names), path)
    return frame_of({name: _joined(name, [record.get(name) for record in records], path) for name in names})


def _split(names: list[Any], rows: list[Any], path: Path, surrogates: bool) -> pd.DataFrame:
    names = [str(name) for name in names]
    check_names(names, path)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, list) or len(row) != len(names):
            size = f"{len(row)} cells" if isinstance(row, list) else json_type(row)
            raise WonderlandError(f"{path}: row {number} of data has {size} where {len(names)} columns are named.")
        _check_record(dict(zip(names, row, strict=True)), f"{path}: row {number} of data", surrogates)
    return frame_of({name: _joined(name, [row[i] for row in rows], path) for i, name in enumerate(names)})


def _columns(columns: dict[str, Any], path: Path, surrogates: bool) -> pd.DataFrame:
    """Columns as lists, or as objects of cells by row label."""
    check_names(list(columns), path)
    first = next(iter(columns.values()))
    if isinstance(first, dict):
        objects = [cells for cells in columns.values() if isinstance(cells, dict)]
        index = list(dict.fromkeys(key for cells in objects for key in cells))
        empty = len(index) * len(objects) - 16 * sum(map(len, objects))
        check("empty_cells", empty, f"{path}, where most columns lack most rows,")
        columns = {name: [cells.get(key) for key in index] if isinstance(cells, dict) else cells
                   for name, cells in columns.items()}  # fmt: skip
    for name, cells in columns.items():
        if not isinstance(cells, list):
            raise WonderlandError(
                f"{path}: {name!r} is {json_type(cells)} where a column of cells is expected. {_LAYOUTS}"
            )
        if len(cells) != len(first := next(iter(columns.values()))):
            raise WonderlandError(
                f"{path}: column {name!r} has {len(cells)} cells, but column {next(iter(columns))!r} has {len(first)}."
            )
        nested = (cell for cell in cells if isinstance(cell, list | dict) and not _may_be_labels(cell))
        _check_record({name: next(nested, None)}, str(path), False)
        if surrogates:
            _check_record(dict(enumerate(cells)), str(path), True)
    return frame_of({name: _joined(name, cells, path) for name, cells in columns.items()})


def _check_record(record: dict[Any, Any], where: str, surrogates: bool) -> None:
    for key, value in record.items():
        if isinstance(value, list | dict) and not _may_be_labels(value):
            raise WonderlandError(f"{where} has {json_type(value)} in {key!r}. {_UNPACK}")
    if surrogates and not _is_valid_unicode(record):
        raise WonderlandError(f"{where} holds half of a character (a lone surrogate).")


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= 40 else digits)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "too deep or too long"
        at = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) and "line " not in where else ""
        raise WonderlandError(f"{where} is not valid JSON ({reason}{at}).") from error


def _is_valid_unicode(record: dict[Any, Any]) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def json_type(value: Any) -> str:
    """What a value of JSON is, in words."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return "null" if value is None else f"{json.dumps(value)[:20]}"
