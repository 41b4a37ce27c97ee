"""Parquet files. The size in the footer may be wrong, so the headers of the pages are read first, and then rows in small batches."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError, need, open_plain
from wonderland.core.limits import beyond, check, limit
from wonderland.core.unpack import RATIO

BATCH = 1 << 26  # decoded bytes that one batch is meant to take
# DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY, of which pyarrow keeps no dictionary.
_DELTAS = (6, 7)
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


def read_parquet(path: Path) -> pd.DataFrame:
    """A Parquet file of plain columns."""
    parquet = need("pyarrow.parquet", extra="parquet", why="to read Parquet files")
    arrow = need("pyarrow", extra="parquet", why="to read Parquet files")
    if path.stat().st_size == 0:
        raise WonderlandError(f"{path} is empty. Give a file that holds rows.")
    most = min(limit("table_bytes"), max(limit("parquet_bytes"), RATIO * path.stat().st_size))
    try:
        with parquet.ParquetFile(path) as file:
            check("table_columns", len(file.schema_arrow.names), path)
            for field in file.schema_arrow:
                if arrow.types.is_nested(field.type):
                    raise WonderlandError(
                        f"{path}: column {field.name!r} holds nested values. Unpack it into plain columns."
                    )
            claimed, deltas = _decoded_size(path, file.metadata)
            check("parquet_bytes", claimed, f"{path}, once decoded,", most)
            fields = enumerate(file.schema_arrow)
            texts = [field.name for place, field in fields if place not in deltas and _is_text(field.type, arrow)]
            longest = max(deltas.values(), default=1)
        # Repeated texts stay codes and a dictionary until their size is known.
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            batches = list(_batches(file, path, most, longest, arrow))
            return _frame(arrow.Table.from_batches(batches, file.schema_arrow), texts, arrow)
    except (arrow.ArrowException, OSError) as error:
        raise WonderlandError(f"{path} is not a Parquet file, or it is damaged.") from error


def _batches(file: Any, path: Path, most: int, longest: int, arrow: Any) -> Iterator[Any]:
    """Batches of so many rows that a batch takes little memory, also where every text is as long as one can be (`longest`)."""
    total, width = 0, 64 * len(file.schema_arrow.names)
    for batch in file.iter_batches(batch_size=max(1, min(BATCH // width, BATCH // longest))):
        total += bytes_of(batch, arrow)
        if total > most:
            raise beyond("parquet_bytes", f"{path}, once decoded,", None, most)
        yield batch


def bytes_of(batch: Any, arrow: Any) -> int:
    """Bytes of a batch when its dictionaries of texts are written out."""
    total = 0
    for column in batch.columns:
        if arrow.types.is_dictionary(column.type) and _is_text(column.type.value_type, arrow):
            compute = need("pyarrow.compute", extra="parquet", why="to read Parquet files")
            lengths = compute.binary_length(column.dictionary)
            total += (compute.sum(compute.take(lengths, column.indices)).as_py() or 0) + 8 * len(column)
        else:
            total += column.nbytes
    return total


def _is_text(kind: Any, arrow: Any) -> bool:
    types = arrow.types
    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary))


def _frame(table: Any, texts: list[str], arrow: Any) -> pd.DataFrame:
    """The frame, with texts written out."""
    for name in texts:
        place = table.schema.get_field_index(name)
        plain = table.schema.field(place).type.value_type
        table = table.set_column(place, name, table.column(place).cast(plain))
    return table.to_pandas(ignore_metadata=True)


def _decoded_size(path: Path, metadata: Any) -> tuple[int, dict[int, int]]:
    """Bytes that the pages of a file decode to, by the headers of the pages, and the largest page of columns of deltas.

    A page is decompressed to exactly the size in its header, and holds the number of values in its header; repeated values of
    dictionaries are counted when they are read.
    """
    total, packed, largest, deltas = 0, 0, {}, set()
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group)
            for place in range(rows.num_columns):
                column = rows.column(place)
                starts = [offset for offset in (column.dictionary_page_offset, column.data_page_offset) if offset]
                width = _WIDTHS.get(column.physical_type, 1)
                packed += column.total_compressed_size
                if column.total_compressed_size < 0 or packed > size:
                    raise OSError("columns that overlap")  # each of them would be walked through
                for unpacked, values, encoding in _pages(file, min(starts, default=0), column.total_compressed_size):
                    total += max(unpacked, values * width)
                    largest[place] = max(largest.get(place, 1), unpacked)
                    deltas |= {place} if encoding in _DELTAS else set()
    return total, {place: largest[place] for place in deltas}


def _pages(file: Any, start: int, length: int) -> Iterator[tuple[int, int, int]]:
    """Unpacked size, number of values and encoding of the pages in one column chunk."""
    place, long = start, False
    while place < start + length:
        file.seek(place)
        reader = _Compact(file.read(limit("header_bytes")) if long else file.read(1 << 12))
        try:
            header = reader.struct()
        except EOFError as error:  # the least and the greatest text of a page may be long
            if long:
                raise OSError("a header is cut short") from error
            long = True
            continue
        packed, unpacked = header.get(3, -1), header.get(2, -1)
        if packed < 0 or unpacked < 0:
            raise OSError("a page without a size")
        inner = header.get(5) or header.get(8)
        inner = inner if isinstance(inner, dict) else {}
        yield unpacked, inner.get(1, 0), inner.get(2 if 5 in header else 4, 0)
        place, long = place + reader.place + packed, False


class _Compact:
    """A reader of Thrift's compact protocol, as far as page headers need it: whole numbers and nested structs by field number."""

    def __init__(self, data: bytes):
        self.data, self.place = data, 0

    def byte(self) -> int:
        if self.place >= len(self.data):
            raise EOFError
        self.place += 1
        return self.data[self.place - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise OSError("a number of more than 64 bits")

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > 8:
            raise OSError("nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            step, kind = head >> 4, head & 0x0F
            number = number + step if step else self._signed()
            fields[number] = self._value(kind, depth)
        return fields

    def _signed(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            self.place += 8
            return 0
        if kind == 8:  # text or bytes
            length = self.varint()
            self.place += length
            return None
        if kind in (9, 10):
            head = self.byte()
            count, inner = (self.varint() if head >> 4 == 15 else head >> 4), head & 0x0F
            if count > len(self.data) or depth > 8:
                raise OSError("a list longer than its header, or nested too deeply")
            # In a list, each true or false takes a byte; as a field it is part of the head.
            return [self.byte() == 1 if inner in (1, 2) else self._value(inner, depth + 1) for _ in range(count)]
        if kind == 12:
            return self.struct(depth + 1)
        raise OSError("an unknown field")
