"""Feather files: record batches of Arrow, read one at a time, since a batch may be packed."""

from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError, need
from wonderland.core.limits import beyond, check, limit
from wonderland.core.unpack import RATIO
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
            with arrow.memory_map(str(path)) as source, arrow.ipc.open_file(source) as batches:
                _check_schema(batches.schema, path, arrow)
                pieces, size = [], 0
                for i in range(batches.num_record_batches):
                    pieces.append(batches.get_batch(i))
                    size += bytes_of(pieces[-1], arrow)
                    if size > most:
                        raise beyond("parquet_bytes", f"{path}, once decoded,", None, most)
                table = arrow.Table.from_batches(pieces, batches.schema)
        else:
            table = feather.read_table(path, memory_map=False)
            _check_schema(table.schema, path, arrow)
        return plain(table.to_pandas(ignore_metadata=True, integer_object_nulls=True))
    except (arrow.ArrowException, OSError) as error:
        raise WonderlandError(f"{path} is not a Feather file, or it is damaged.") from error


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
