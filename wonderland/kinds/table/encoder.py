"""Encoder of tables: numbers, scaled and softly clipped, then category codes; fitted on the training rows only."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.core.limits import limit
from wonderland.data.cells import to_levels, to_supported_type
from wonderland.data.columns import Column, read_as, read_column
from wonderland.data.dataset import TASKS, Finding
from wonderland.data.encoder import Field, RowEncoder, cells_of_field
from wonderland.data.ports import Preprocessing
from wonderland.data.reading import Written
from wonderland.data.several import read_folder, table_files
from wonderland.data.source import read_source
from wonderland.data.target import MAX_CLASSES, class_codes, missing_target
from wonderland.kinds.table.column_encoding import (
    LARGEST,
    ColumnEncoding,
    are_texts,
    is_text,
    read_columns,
    read_encoding,
    require,
)
from wonderland.kinds.table.program import TableProgram, feed, odd_rows
from wonderland.kinds.table.table import Table, check_finite, unread_finding

AT_ONCE = 1 << 16  # entries that are scaled at once: more leave the cache, fewer pay for each call


def center_and_scale(values: np.ndarray) -> tuple[float, float]:
    """The median and the interquartile range of training values.

    Where the range is zero (counts that are mostly zero), the median distance of the other values from the median.

    >>> center_and_scale(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    (3.0, 2.0)
    """
    values = np.clip(values, -LARGEST, LARGEST)
    low, center, high = np.quantile(values, [0.25, 0.5, 0.75]) if len(values) else np.zeros(3)
    if high - low > 1e-300:
        return float(center), float(high - low)
    distance = np.abs(values - center)
    others = distance[distance > 1e-300]
    return float(center), float(np.median(others)) if len(others) else 1.0


def squash(values: np.ndarray, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    r"""Scale values, and clip them softly to -3..3: :math:`f(z) = z / \sqrt{1 + (z/3)^2}` with :math:`z = (x - c) / s`.

    Nearly linear around the center, never beyond 3.

    >>> squash(np.array([[3.0, 4.0, 1e300]]), np.array(3.0), np.array(2.0)).round(3).tolist()
    [[0.0, 0.493, 3.0]]
    """
    with np.errstate(over="ignore"):
        z = np.clip((np.clip(values, -LARGEST, LARGEST) - center) / scale, -LARGEST, LARGEST)
    return 3 * (z / np.hypot(3, z))


class TableEncoder(RowEncoder):
    """Turns rows of a table into a float32 tensor (n, p + q): p numbers, then q category codes.

    `numbers` names the p numbers; `categories` has (column, number of codes) for the q codes; `column_of` has, for each of
    the p + q, the column of the table that it came from.
    """

    kind = "table"
    reads_tables = True

    def __init__(
        self,
        encodings: list[ColumnEncoding],
        center: np.ndarray,
        scale: np.ndarray,
        *,
        target: str | None = None,
        task: str | None = None,
        classes: list[str] | None = None,
        ignored: list[str] | None = None,
    ) -> None:
        self.encodings, self.center, self.scale = encodings, center, scale
        self.target, self.task, self.classes, self.ignored = target, task, classes, ignored or []
        self.noticed: list[Finding] = []
        features = [(encoding.name, *feature) for encoding in encodings for feature in encoding.features()]
        self.numbers = [name for _, name, _ in features]
        self.scaled = np.array([scaled for *_, scaled in features], dtype=bool)
        self.categories = [
            (encoding.name, encoding.code_count) for encoding in encodings if encoding.kind == "category"
        ]
        self.column_of = [column for column, *_ in features] + [name for name, _ in self.categories]

    @classmethod
    def fit(cls, table: Table, rows: np.ndarray) -> "TableEncoder":
        """Fit fill values, scales and levels to these rows only."""
        columns = [column.take(rows) for column in table.features]
        encodings = [ColumnEncoding.fit(column, column.name == table.time) for column in columns]
        raw = [
            encoding.values(column)[~column.is_missing if encoding.kind == "number" else slice(None)]
            for encoding, column in zip(encodings, columns, strict=True)
            if encoding.kind != "category"
        ]
        scaled = [scaled for encoding in encodings for _, scaled in encoding.features()]
        if not scaled and not any(encoding.kind == "category" for encoding in encodings):
            raise WonderlandError(f"{table.name} has no usable column: none varies within the training part.")
        sizes = [center_and_scale(values) for block in raw for values in block.T]
        center = np.array([c if keep else 0.0 for (c, _), keep in zip(sizes, scaled, strict=True)], np.float64)
        scale = np.array([s if keep else 1.0 for (_, s), keep in zip(sizes, scaled, strict=True)], np.float64)
        return cls(
            encodings,
            center,
            scale,
            target=table.target,
            task=table.task,
            classes=table.classes,
            ignored=[name for name in table.left_out if name != table.target],
        )

    def encode(self, dataset: Table, rows: np.ndarray | None = None) -> Tensor:
        """Rows (all by default) as a float32 tensor; `noticed` then lists what was filled in."""
        self.noticed = []
        size = len(dataset) if rows is None else len(rows)
        out = np.empty((size, len(self.numbers) + len(self.categories)), np.float32)
        code, done, blocks = len(self.numbers), 0, []
        for encoding in self.encodings:
            column = dataset.column(encoding.name)
            if column.kind != encoding.kind:
                raise WonderlandError(
                    f"Column {encoding.name!r} is {column.kind} here and was {encoding.kind} in training. "
                    "Open new data with the encoder's own open."
                )
            column = column if rows is None else column.take(rows)
            if encoding.kind == "category":
                codes = encoding.codes(column)
                out[:, code] = codes
                code += 1
                self._note_filled(encoding, column, codes)
                continue
            blocks.append(encoding.values(column))
            self._note_filled(encoding, column, None)
            if size * len(blocks) > AT_ONCE:
                done, blocks = self._write(out, blocks, done), []
        self._write(out, blocks, done)
        return torch.from_numpy(out)

    def _write(self, out: np.ndarray, blocks: list[np.ndarray], start: int) -> int:
        """Scale blocks of numbers (n, k) and write them into `out` from column `start` on; the column after them."""
        if not blocks:
            return start
        block = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, 1)
        own = slice(start, start + block.shape[1])
        out[:, own] = np.where(self.scaled[own], squash(block, self.center[own], self.scale[own]), block)
        return own.stop

    def _note_filled(self, encoding: ColumnEncoding, column: Column, codes: np.ndarray | None) -> None:
        if codes is None:
            if column.missing:
                text = (
                    f"Column {encoding.name!r}: {column.missing:,} of {len(column):,} cells were missing and filled in."
                )
                self.noticed.append(Finding("filled", encoding.name, column.missing, text))
            return
        unknown = int(((codes == 0) & ~column.is_missing).sum())
        if unknown:
            text = f"Column {encoding.name!r}: {unknown:,} of {len(column):,} cells hold a category that training did not have."
            self.noticed.append(Finding("unseen", encoding.name, unknown, text))
        lost = int(((codes == 0) & column.is_missing).sum())
        if lost:
            text = f"Column {encoding.name!r}: {lost:,} of {len(column):,} cells are missing, which never happened in training."
            self.noticed.append(Finding("filled", encoding.name, lost, text))

    def open(self, source: Any, *, need_target: bool = False) -> Table:
        """Open new data the way the training data was opened; with `need_target`, the target as well."""
        if isinstance(source, Table) and not need_target:
            return source
        text_columns = {encoding.name for encoding in self.encodings if encoding.kind in ("category", "text")}
        as_text = text_columns | ({self.target} if self.classes and self.target else set())
        contents = read_source(source, as_text=as_text)
        if isinstance(source, Written):
            as_text |= set(source.as_text)
        if contents.folder is not None and contents.frame is None and (paths := table_files(contents.folder)):
            reading = source.reading if isinstance(source, Written) else None
            contents.frame, contents.findings = read_folder(contents.folder, paths, as_text, reading)
        if contents.frame is None:
            content = f"{contents.folder} is a folder" if contents.folder else f"{contents.name} holds images"
            raise WonderlandError(f"This model was trained on a table; {content}.")
        frame, findings = contents.frame, contents.findings
        names = [str(name) for name in frame.columns]
        missing = [encoding.name for encoding in self.encodings if encoding.name not in names]
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            listed = ", ".join(repr(name) for name in missing[:3])
            unused = [name for name in names if name not in {encoding.name for encoding in self.encodings}]
            plural = "column" if len(missing) == 1 else "columns"
            raise WonderlandError(
                f"{contents.name} lacks the {plural} {listed}{more} that the model needs.{nearest(missing[0], unused)}"
            )
        columns = read_columns(self.encodings, frame)
        check_finite(columns)
        for column in columns:
            if column.unread:
                findings.append(unread_finding(column, "should hold"))
        extra = [
            n for n in names if n not in {self.target, *self.ignored, *(encoding.name for encoding in self.encodings)}
        ]
        if extra:
            listed = ", ".join(repr(name) for name in extra[:3]) + (
                f" and {len(extra) - 3} more" if len(extra) > 3 else ""
            )
            findings.append(
                Finding("extra", extra[0], len(extra), f"Columns the model does not know are ignored: {listed}.")
            )
        y = None
        if need_target:
            y, rows = self._read_targets(contents.name, frame, findings)
            if len(rows) < len(frame):
                columns = [column.take(rows) for column in columns]
        return Table(
            contents.name,
            columns,
            target=self.target,
            task=self.task,
            classes=self.classes,
            y=y,
            findings=findings,
            origin=contents.origin,
        )

    def _read_targets(self, name: str, frame: Any, findings: list[Finding]) -> tuple[np.ndarray, np.ndarray]:
        """Targets of the rows that have one, and which rows these are."""
        if self.target is None or self.target not in frame.columns:
            hint = nearest(str(self.target), [str(column) for column in frame.columns])
            raise WonderlandError(f"{name} has no column {self.target!r}, the target to compare with.{hint}")
        if self.classes is None:
            column = read_as(Column(self.target, "number", np.empty(0)), frame[self.target])
            check_finite([column])
            y = column.values
        else:
            column, codes, names = self._class_names(frame[self.target])
            code_of_class = {known: code for code, known in enumerate(self.classes)}
            code_of_name = [code_of_class.get(known, -1) for known in names]
            unknown = {known: int((codes == i).sum()) for i, known in enumerate(names) if code_of_name[i] < 0}
            if unknown:
                first, count = next(iter(unknown.items()))
                rows = "1 row" if count == 1 else f"{count:,} rows"
                listed = ", ".join(repr(known) for known in self.classes[:5]) + (
                    ", ..." if len(self.classes) > 5 else ""
                )
                raise WonderlandError(
                    f"The target {self.target!r} holds class {first!r} ({rows}), which the model does not know: {listed}."
                )
            y = np.array([*code_of_name, -1], np.int64)[codes]
        rows = np.flatnonzero(~column.is_missing)
        if len(rows) == 0:
            raise WonderlandError(
                f"The target {self.target!r} has no values in {name}. Fill it in, to have something to compare with."
            )
        if len(rows) < len(y):
            missing = len(y) - len(rows)
            findings.append(missing_target(self.target, missing, len(y)))
        return y[rows], rows

    def _class_names(self, cells: Any) -> tuple[Column, np.ndarray, list[str]]:
        """Cells as codes into class names: as they are written, or else as the target column was read in training."""
        codes, levels = to_levels(to_supported_type(str(self.target), cells))
        names = [str(level) for level in levels]
        if set(names) <= set(self.classes or ()):
            return Column(str(self.target), "category", codes, levels), codes, names
        column = read_column(str(self.target), cells)
        return column, *class_codes(column)

    def schema(self) -> list[Field]:
        """One field for each column of the table."""
        return [encoding.field() for encoding in self.encodings]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Rows given as values of the fields, as a table: column by column, without a frame in between."""
        columns = []
        for encoding, field in zip(self.encodings, self.schema(), strict=True):
            if encoding.kind == "number":
                numbers = [np.nan if (value := row.get(field.name)) is None else value for row in rows]
                columns.append(replace(encoding.like(), values=np.array(numbers, np.float64)))
            else:
                columns.append(read_as(encoding.like(), cells_of_field(rows, field)))
        check_finite(columns)
        return Table("rows", columns, target=self.target, task=self.task, classes=self.classes, fingerprint="rows")

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return TableProgram(self.encodings, self.center, self.scale, double)

    def beside(self) -> dict[str, bytes]:
        """The words that are counted in columns of texts."""
        words = {encoding.name: encoding.text.words for encoding in self.encodings if encoding.text is not None}
        return {"words.json": json.dumps(words, ensure_ascii=False).encode("utf-8", "surrogatepass")} if words else {}

    def feed(self, dataset: Table, *, double: bool = False) -> dict[str, np.ndarray]:
        return feed(self.encodings, [dataset.column(encoding.name) for encoding in self.encodings], double)

    def samples(self, count: int, seed: int = 0) -> pd.DataFrame:
        """Rows with missing cells, new categories, extreme numbers and far dates among them."""
        features = [(encoding, name) for encoding in self.encodings for name, _ in encoding.features()]
        sizes = {
            encoding.name: (float(self.center[i]), float(self.scale[i]))
            for i, (encoding, name) in enumerate(features)
            if name in (encoding.name, f"{encoding.name} days")
        }
        return odd_rows(self.encodings, sizes, count, seed)

    def traits(self, dataset: Table, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The columns that the model reads; of a text its length in words, so that no text is stored."""
        traits: dict[str, np.ndarray] = {}
        for encoding in self.encodings:
            column = dataset.column(encoding.name)
            if encoding.kind == "text":
                assert column.levels is not None
                words = np.array([*(len(text.split()) for text in column.levels), np.nan])
                traits[f"{encoding.name} (words)"] = words[column.values][rows]
            elif column.levels is None:
                values = np.where(column.is_missing, np.nan, column.values)[rows]
                if encoding.kind == "date":
                    near = np.abs(values) < 1e6  # days: what datetime64 can say in seconds
                    values = np.where(near, values * 86400, np.nan)
                    values = np.where(near, np.nan_to_num(values), 0).astype("datetime64[s]")
                    values[~near] = np.datetime64("NaT")
                traits[encoding.name] = values
            else:
                traits[encoding.name] = dataset.texts_of(encoding.name)[rows]
        return traits

    def arguments(self) -> dict[str, Any]:
        """For models of tables: how many numbers, the levels of each category, and the width of an encoded row."""
        levels = [count for _, count in self.categories]
        return {"numbers": len(self.numbers), "levels": levels, "features": len(self.numbers) + len(levels)}

    def to_json(self) -> dict[str, Any]:
        """The encodings, readable JSON for `from_json`; the scales are in `tensors`."""
        return {
            "kind": "table",
            "target": self.target,
            "task": self.task,
            "classes": self.classes,
            "ignored": self.ignored,
            "columns": [encoding.to_json() for encoding in self.encodings],
        }

    def tensors(self) -> dict[str, Tensor]:
        """Center and scale of each number, and the arrays of each text column, as float64."""
        arrays = {"center": torch.from_numpy(self.center.copy()), "scale": torch.from_numpy(self.scale.copy())}
        for i, encoding in enumerate(self.encodings):
            if encoding.text is not None:
                arrays |= {f"text.{i}.{name}": tensor for name, tensor in encoding.text.tensors().items()}
        return arrays

    @classmethod
    def from_json(cls, saved: Any, tensors: dict[str, Tensor]) -> "TableEncoder":
        """Rebuild a saved encoder; every value is checked, because the file may be damaged or hostile."""
        require(isinstance(saved, dict) and saved.get("kind") == "table", "it is not for tables")
        target, task, classes, ignored = (saved.get(key) for key in ("target", "task", "classes", "ignored"))
        require(target is None or is_text(target), "the target is not a name")
        require(task is None or task in TASKS, "the task is not known")
        require(classes is None or are_texts(classes, MAX_CLASSES), "the classes are not a list of names")
        require(classes is None or len(set(classes)) == len(classes) > 1, "the classes are not different names")
        require((task in ("binary", "multiclass")) == (classes is not None), "task and classes do not agree")
        require(task != "binary" or len(classes or ()) == 2, "task and classes do not agree")
        require(
            ignored is None or are_texts(ignored, limit("table_columns")), "the ignored columns are not a list of names"
        )
        columns = saved.get("columns")
        require(isinstance(columns, list) and 0 < len(columns) <= limit("table_columns"), "it has no list of columns")
        given = tensors if isinstance(tensors, dict) else {}
        encodings = [
            read_encoding(entry, {name: given.get(f"text.{i}.{name}") for name in ("weights", "projection")})
            for i, entry in enumerate(columns or ())
        ]
        require(len({encoding.name for encoding in encodings}) == len(encodings), "a column occurs twice")
        width = sum(len(encoding.features()) for encoding in encodings)
        arrays = []
        for key in ("center", "scale"):
            tensor = tensors.get(key) if isinstance(tensors, dict) else None
            tensor = tensor if isinstance(tensor, Tensor) else torch.empty(0)
            good = tensor.dtype == torch.float64 and tuple(tensor.shape) == (width,)
            require(good, f"the tensor {key!r} does not fit its columns")
            arrays.append(tensor.numpy().copy())
            require(bool(np.isfinite(arrays[-1]).all()), f"the tensor {key!r} holds values that are not finite")
        require(bool((arrays[1] > 0).all()), "the tensor 'scale' holds values that are not positive")
        return cls(encodings, *arrays, target=target, task=task, classes=classes, ignored=ignored)
