"""Feather files: record batches of Arrow, read one at a time, since a batch may be packed."""

import struct
from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError, need
from wonderland.core.limits import beyond, check, limit
from wonderland.core.unpack import RATIO
from wonderland.data.arrow_size import FIRST_MESSAGE, unpacked_sizes
from wonderland.data.bounds import check_names
from wonderland.data.cells import beyond_floats
from wonderland.data.parquet import bytes_of


def read_feather(path: Path) -> pd.DataFrame:
    """A Feather file (Arrow IPC, also of the first version) of plain columns."""
    arrow = need("pyarrow", extra="parquet", why="to read Feather files")
    feather = need("pyarrow.feather", extra="parquet", why="to read Feather files")
    if path.stat().st_size == 0:
        raise WonderlandError(f"{path} is empty. Give a file that holds rows.")
    check("table_bytes", path.stat().st_size, path)
    most = max(limit("parquet_bytes"), RATIO * path.stat().st_size)
    try:
        with path.open("rb") as file:
            start = file.read(6)
        if start == b"ARROW1":
            with arrow.memory_map(str(path)) as source:
                _check_unpacked(source, path, most, arrow)
                source.seek(FIRST_MESSAGE)  # the messages that were checked, whatever the footer names
                batches = arrow.ipc.open_stream(source)
                _check_schema(batches.schema, path, arrow)
                pieces, size = [], 0
                for piece in batches:
                    pieces.append(piece)
                    size += bytes_of(piece, arrow)
                    if size > most:
                        raise beyond("parquet_bytes", f"{path}, once decoded,", None, most)
                table = arrow.Table.from_batches(pieces, batches.schema)
        else:
            table = feather.read_table(path, memory_map=False)
            _check_schema(table.schema, path, arrow)
        return plain(table.to_pandas(ignore_metadata=True, integer_object_nulls=True))
    except (arrow.ArrowException, OSError, struct.error) as error:
        raise WonderlandError(f"{path} is not a Feather file, or it is damaged.") from error


def _check_unpacked(source: Any, path: Path, most: int, arrow: Any) -> None:
    """Refuse a file whose batches claim to unpack to more than `most` bytes, before any of them is unpacked."""
    check("parquet_bytes", sum(unpacked_sizes(source, arrow)), f"{path}, once decoded,", most)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of integers with missing cells as floats, where floats hold them exactly."""
    for name in frame.columns:
        cells = pd.Series(frame[name])
        integers = cells.dtype == object and pd.api.types.infer_dtype(cells, skipna=True) == "integer"
        if integers and not beyond_floats(pd.Series(cells.dropna())):
            frame[name] = cells.astype(float)
    return frame


def _check_schema(schema: Any, path: Path, arrow: Any) -> None:
    check_names(list(schema.names), path)
    for field in schema:
        if arrow.types.is_nested(field.type):
            raise WonderlandError(f"{path}: column {field.name!r} holds nested values. Unpack it into plain columns.")
