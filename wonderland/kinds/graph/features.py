"""From columns of nodes or edges to numbers: standardised numbers, one-hot categories, or sparse counts as they are."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.pattern import Pattern, SparseRows
from wonderland.data.columns import read_column
from wonderland.data.dataset import Finding, counted

MOST_LEVELS = 64
SPARSE = 0.1  # of the cells at most are not 0, from where counts are kept sparse
WIDE = 24  # columns at least, for counts


@dataclass
class Columns:
    """What was learned from the columns of nodes or edges of the training part.

    `names` are the columns in order; a column is {"kind": "number", "mean", "scale"} or {"kind": "category", "levels"}. With
    `counts` all columns are numbers that are mostly 0, and each row is divided by its sum.
    """

    names: list[str]
    about: list[dict[str, Any]]
    counts: bool = False
    noticed: list[Finding] = field(default_factory=list, compare=False)

    @staticmethod
    def fit(frame: Any, rows: np.ndarray, noun: str) -> "Columns":
        """Learn from some rows of a frame."""
        noticed: list[Finding] = []
        if _is_counts(frame):
            return Columns(
                [str(name) for name in frame], [{"kind": "number", "mean": 0.0, "scale": 1.0}] * frame.shape[1], True
            )
        names, about = [], []
        for name in frame:
            column = read_column(str(name), frame[name])
            if column.levels is None and column.kind != "constant":
                values = column.values[rows]
                values = values[np.isfinite(values)]
                if len(values) and float(values.std()) > 0:
                    names.append(str(name))
                    about.append({"kind": "number", "mean": float(values.mean()), "scale": float(values.std())})
                    continue
            elif column.levels is not None and column.kind in ("category", "boolean"):
                codes = column.values[rows]
                levels = [str(column.levels[code]) for code in np.unique(codes[codes >= 0])]
                if 1 < len(levels) <= MOST_LEVELS:
                    names.append(str(name))
                    about.append({"kind": "category", "levels": levels})
                    continue
            text = f"Column {str(name)!r} of the {noun} is left out: it holds {column.kind} cells that say nothing general."
            noticed.append(Finding("left out", str(name), 1, text))
        return Columns(names, about, False, noticed)

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return sum(1 if each["kind"] == "number" else len(each["levels"]) for each in self.about)

    def encode(self, frame: Any, rows: int, noun: str) -> Tensor | SparseRows:
        """The rows of a frame as numbers (rows, width); what is missing becomes the mean."""
        if frame is None or not self.names:
            return torch.zeros(rows, self.width)
        self.noticed = []
        for name in self.names:
            if name not in frame:
                raise WonderlandError(f"The {noun} lack column {name!r}, which this model was trained with.")
        if self.counts:
            return self._counts(frame[self.names], noun)
        pieces, missing = [], 0
        for name, about in zip(self.names, self.about, strict=True):
            if about["kind"] == "number":
                column = read_column(name, frame[name])
                plain: Any = pd.to_numeric(frame[name], errors="coerce") if column.levels is not None else None
                values = column.values if plain is None else plain.to_numpy(np.float64, na_value=np.nan)
                bad = ~np.isfinite(values)
                missing += int(bad.sum())
                values = np.where(bad, 0.0, (np.where(bad, 0, values) - about["mean"]) / about["scale"])
                pieces.append(np.clip(values, -10, 10)[:, None])
            else:
                place = {level: i for i, level in enumerate(about["levels"])}
                column = read_column(name, frame[name].astype(object))
                labels = [column.cell(i) for i in range(len(frame))]
                codes = np.array([place.get("" if cell is None else str(cell), -1) for cell in labels])
                missing += int(sum(cell is None for cell in labels))
                pieces.append((codes[:, None] == np.arange(len(place))).astype(np.float64))
        self._tell(missing, noun)
        return torch.from_numpy(np.concatenate(pieces, 1)).float()

    def _counts(self, frame: Any, noun: str) -> SparseRows:
        values = frame.to_numpy(np.float32, na_value=np.nan)
        bad = ~np.isfinite(values)
        self._tell(int(bad.sum()), noun)
        values[bad] = 0
        return sparse_counts(values)

    def _tell(self, missing: int, noun: str) -> None:
        if missing:
            text = f"{counted(missing, 'cell', 'cells')} of the {noun} had no value and {'was' if missing == 1 else 'were'} filled in."
            self.noticed = [Finding("missing", noun, missing, text)]

    def to_json(self) -> dict[str, Any]:
        return {"names": self.names, "about": self.about, "counts": self.counts}

    @staticmethod
    def from_json(value: Any) -> "Columns":
        """Back from `to_json`; content that cannot be right is refused."""
        try:
            names, about, counts = value["names"], value["about"], value["counts"]
            fine = (
                isinstance(names, list)
                and isinstance(about, list)
                and len(names) == len(about)
                and isinstance(counts, bool)
            )
            fine = fine and all(isinstance(name, str) for name in names) and len(names) <= 100_000
            for each in about if fine else ():
                if each["kind"] == "number":
                    fine &= all(
                        isinstance(each[key], int | float) and not isinstance(each[key], bool)
                        for key in ("mean", "scale")
                    )
                    fine &= 0 < abs(each["scale"]) < 1e300 and abs(each["mean"]) < 1e300
                else:
                    fine &= each["kind"] == "category" and all(isinstance(level, str) for level in each["levels"])
                    fine &= 1 < len(each["levels"]) <= MOST_LEVELS
            if not fine:
                raise ValueError
        except (KeyError, TypeError, ValueError) as error:
            raise WonderlandError(
                "preprocess.json does not say what columns a graph has: it is damaged or not ours."
            ) from error
        return Columns(names, about, counts)


def _is_counts(frame: Any) -> bool:
    """Whether columns hold counts: many of them, no negative number, and hardly any that is not 0."""
    if frame.shape[1] < WIDE or not all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes):
        return False
    values = frame.to_numpy(np.float32, na_value=np.nan)
    return bool((np.nan_to_num(values) >= 0).all() and (np.nan_to_num(values) != 0).mean() <= SPARSE)


def sparse_counts(values: np.ndarray) -> SparseRows:
    """Rows of counts, each divided by its sum."""
    row, column = np.nonzero(values)
    kept = torch.from_numpy(values[row, column]).float()
    pattern, order = Pattern.of(torch.from_numpy(row), torch.from_numpy(column), *values.shape)
    kept = kept[order]
    total = torch.zeros(values.shape[0]).index_add(0, pattern.row, kept)
    return SparseRows(pattern, kept / total[pattern.row])


def beside(first: Tensor | SparseRows, second: Tensor | SparseRows) -> Tensor | SparseRows:
    """Two matrices side by side, sparse if both are."""
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return torch.cat([first, second], 1)
    if isinstance(first, Tensor) and not first.shape[1]:
        return second
    a, b = (SparseRows.of(each) if isinstance(each, Tensor) else each for each in (first, second))
    row = torch.cat([a.pattern.row, b.pattern.row])
    column = torch.cat([a.pattern.column, b.pattern.column + a.shape[1]])
    pattern, order = Pattern.of(row, column, a.shape[0], a.shape[1] + b.shape[1])
    return SparseRows(pattern, torch.cat([a.value, b.value])[order])
