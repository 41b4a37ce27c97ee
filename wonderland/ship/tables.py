"""Predictions on disk: CSV, Parquet or JSON lines, by the suffix of the name."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError, need, write_bytes
from wonderland.core.errors import visible

FILE_FORMATS = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def table_format(path: str | Path) -> str:
    """The file format by the suffix of a name."""
    ending = Path(path).suffix.lower()
    if ending not in FILE_FORMATS:
        raise WonderlandError(f"Predictions are written as .csv, .parquet or .jsonl, and {str(path)!r} ends otherwise.")
    return FILE_FORMATS[ending]


def write_table(table: pd.DataFrame, path: str | Path, *, safe: bool = False) -> None:
    """Write a table of predictions, atomically. In CSV a set is a JSON list, so that class names may hold commas.

    With `safe`, a text of a CSV file that a spreadsheet would compute gets an apostrophe before it.
    """
    file_format = table_format(path)
    if not Path(path).absolute().parent.is_dir():
        raise WonderlandError(f"The folder of {path} does not exist: make it first.")
    if safe and file_format != "csv":
        raise WonderlandError(f"Safe cells are for CSV files, which spreadsheets open; {path} is none.")
    table = _without_raw_bytes(table)
    if file_format == "parquet":
        need("pyarrow", extra="parquet", why="to write Parquet files")
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        write_bytes(path, buffer.getvalue())
    elif file_format == "jsonl":
        text = table.to_json(None, orient="records", lines=True, force_ascii=False, double_precision=15)
        write_bytes(path, str(text).encode())
    else:
        content = as_csv(table, safe=safe)
        write_bytes(path, content.encode())


def as_csv(table: pd.DataFrame, *, safe: bool = False, header: bool = True) -> str:
    """A table of predictions as CSV text: a set is a JSON list; with `safe`, no cell is a formula."""
    if "set" in table:
        table = table.assign(set=[json.dumps(labels, ensure_ascii=False) for labels in table["set"]])
    if safe:
        table = table.rename(columns=_inert).map(_inert)
    content = table.to_csv(index=False, header=header)
    if "\r" in content:  # the writer leaves it unquoted, and readers take it for the end of a row
        content = table.to_csv(index=False, header=header, quoting=csv.QUOTE_NONNUMERIC)
    return content


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _inert(cell: Any) -> Any:
    """A text that a spreadsheet takes for a formula, marked as text; numbers stay as they are.

    Spreadsheets also skip spaces and quotes before a formula, and read the signs in full width.

    >>> _inert("=1+1"), _inert(" @sum"), _inert(-2.5), _inert("a=b")
    ("'=1+1", "' @sum", -2.5, 'a=b')
    """
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip(" \"'").startswith(FORMULA) else cell


def _without_raw_bytes(table: pd.DataFrame) -> pd.DataFrame:
    """Bytes of file names that are not UTF-8 written out, as in caf\\xe9.png, so that every reader takes the file."""
    changed = {}
    for name in table.columns:
        if table[name].dtype.kind in "biuf":
            continue
        cells = [visible(cell) if isinstance(cell, str) else cell for cell in table[name]]
        if any(new is not old for new, old in zip(cells, table[name], strict=True)):
            changed[name] = cells
    return table.assign(**changed).rename(columns=visible)
