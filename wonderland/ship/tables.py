"""Predictions on disk: CSV, Parquet or JSON lines, by the suffix of the name."""

import io
import json
from pathlib import Path

import pandas as pd

from wonderland.core import WonderlandError, need, write_bytes

FILE_FORMATS = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def table_format(path: str | Path) -> str:
    """The file format by the suffix of a name."""
    ending = Path(path).suffix.lower()
    if ending not in FILE_FORMATS:
        raise WonderlandError(f"Predictions are written as .csv, .parquet or .jsonl, and {str(path)!r} ends otherwise.")
    return FILE_FORMATS[ending]


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a table of predictions, atomically. In CSV a set is a JSON list, so that class names may hold commas."""
    file_format = table_format(path)
    if not Path(path).absolute().parent.is_dir():
        raise WonderlandError(f"The folder of {path} does not exist: make it first.")
    if file_format == "parquet":
        need("pyarrow", extra="parquet", why="to write Parquet files")
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        write_bytes(path, buffer.getvalue())
    elif file_format == "jsonl":
        text = table.to_json(None, orient="records", lines=True, force_ascii=False, double_precision=15)
        write_bytes(path, str(text).encode())
    else:
        if "set" in table:
            table = table.assign(set=[json.dumps(labels, ensure_ascii=False) for labels in table["set"]])
        write_bytes(path, table.to_csv(index=False).encode())
