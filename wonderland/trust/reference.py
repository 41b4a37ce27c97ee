"""Reference: a bounded sample of the rows a model was calibrated on, to compare new rows with later."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from wonderland.core import WonderlandError, permutation

ROWS = 2000  # rows of the sample
COLUMNS = 500
LEVELS = 200  # categories of a column that are kept by name
LONGEST_NAME = 200  # characters of a category; longer ones are "(other)"
MOST_DAYS = 2**47  # before and after 1970: more than a date of numpy in seconds can be
OTHER = "(other)"
FEWEST = 2  # rows; rarer categories are one
OFTEN = 10  # rows; a category with as many is common in any sample


@dataclass(frozen=True)
class Reference:
    """What later rows are compared with.

    `columns` holds the columns that are compared, by name: numbers as float64, all else as text; `dates` names those that are
    days since 1970. `predictions` (n, c) are class probabilities, or one predicted number, each by a model that was not
    trained on the row. `y` (n,) holds the codes of the true classes, or the true numbers. `rows` is how many rows the sample
    was drawn from.
    """

    columns: Mapping[str, ndarray]
    predictions: ndarray
    y: ndarray
    classes: tuple[str, ...] | None
    rows: int
    dates: tuple[str, ...] = ()

    @staticmethod
    def of(
        columns: Mapping[str, Any], predictions: Any, y: Any, classes: Any = None, rows: int | None = None
    ) -> "Reference":
        """From columns and predictions of held-out rows; rare categories become "(other)".

        >>> reference = Reference.of({"town": ["a", "a", "b"]}, [[0.5], [0.6], [0.7]], [1.0, 2.0, 3.0])
        >>> reference.columns["town"].tolist()
        ['a', 'a', '(other)']
        """
        kept = {}
        for name, values in list(columns.items())[:COLUMNS]:
            array = days(np.asarray(values))
            kept[str(name)] = array.astype(np.float64) if array.dtype.kind in "fiub" else _common(names_of(array))
        dates = tuple(str(name) for name in kept if np.asarray(columns[name]).dtype.kind == "M")
        predictions, y = np.asarray(predictions, np.float64), np.asarray(y)
        return Reference(kept, predictions, y, None if classes is None else tuple(classes), rows or len(y), dates)

    def alike(self, columns: Mapping[str, Any]) -> dict[str, ndarray]:
        """The columns of new rows as this reference has them: its columns only, unknown categories as "(other)"."""
        alike = {}
        for name, own in self.columns.items():
            if name not in columns:
                raise WonderlandError(f"The new rows have no column {name!r}, which the model was calibrated with.")
            values = days(np.asarray(columns[name]))
            if own.dtype.kind == "f":
                alike[name] = values.astype(np.float64)
                continue
            text = names_of(values)
            alike[name] = np.where(np.isin(text, np.unique(own)), text, OTHER)
        return alike

    def compared(self, columns: Any) -> tuple[dict[str, ndarray], dict[str, ndarray], dict[str, ndarray]]:
        """Columns of the reference and of new rows in one form, and the reference rows that each test has to leave out.

        Which categories are common is decided by a sample, in which common ones come more often than they should: a column with
        rare categories takes one half of the reference rows for that decision, and compares new rows with the other half.
        """
        old, new, left_out = dict(self.columns), self.alike(columns), {}
        deciding = np.zeros(len(self.y), bool)
        deciding[permutation(0, 3, len(self.y))[: len(self.y) // 2]] = True
        for name, own in self.columns.items():
            if own.dtype.kind == "f" or not _has_rare(own):
                continue
            kept = np.unique(_common(own[deciding]))
            old[name], new[name] = (np.where(np.isin(values, kept), values, OTHER) for values in (own, new[name]))
            left_out[name] = deciding
        return old, new, left_out

    def tensors(self) -> dict[str, Tensor]:
        """The arrays, for a safetensors file; categories as codes."""
        arrays = {"predictions": torch.from_numpy(self.predictions), "y": torch.from_numpy(self.y)}
        for i, values in enumerate(self.columns.values()):
            codes = values if values.dtype.kind == "f" else np.unique(values, return_inverse=True)[1].astype(np.int32)
            arrays[f"column.{i}"] = torch.from_numpy(np.ascontiguousarray(codes))
        return {f"reference.{name}": array for name, array in arrays.items()}

    def to_json(self) -> dict[str, Any]:
        """What `tensors` does not hold: names of columns, categories and classes."""
        columns = [
            {"name": name} | ({} if values.dtype.kind == "f" else {"levels": np.unique(values).tolist()})
            for name, values in self.columns.items()
        ]
        classes = None if self.classes is None else list(self.classes)
        return {"columns": columns, "classes": classes, "rows": self.rows, "dates": list(self.dates)}

    @staticmethod
    def read(saved: Any, tensors: Mapping[str, Tensor]) -> "Reference":
        """From `to_json` and `tensors`; anything else is refused."""
        try:
            arrays = {
                name.removeprefix("reference."): tensor.numpy()
                for name, tensor in tensors.items()
                if name.startswith("reference.")
            }
            predictions, y, classes, rows = arrays["predictions"], arrays["y"], saved["classes"], saved["rows"]
            count, columns = len(y), {}
            outputs = 1 if classes is None else len(classes)
            _require(0 < count <= ROWS and y.ndim == 1 and isinstance(rows, int) and rows >= count)
            _require(predictions.dtype == np.float64 and predictions.shape == (count, outputs))
            _require(bool(np.isfinite(predictions).all()))
            if classes is None:
                _require(y.dtype == np.float64 and bool(np.isfinite(y).all()))
            else:
                _require(y.dtype == np.int64 and bool((y >= 0).all() and (y < outputs).all()))
                _require(len(set(classes)) == outputs and all(isinstance(name, str) for name in classes))
                _require(bool((predictions >= 0).all()) and bool(np.allclose(predictions.sum(1), 1, atol=1e-3)))
            _require(len(saved["columns"]) <= COLUMNS and len(arrays) == 2 + len(saved["columns"]))
            for i, entry in enumerate(saved["columns"]):
                values, levels = arrays[f"column.{i}"], entry.get("levels")
                _require(values.shape == (count,) and isinstance(entry["name"], str))
                if levels is None:
                    _require(values.dtype == np.float64)
                else:
                    _require(values.dtype == np.int32 and len(levels) <= LEVELS + 1)
                    _require(all(isinstance(level, str) and len(level) <= LONGEST_NAME for level in levels))
                    _require(bool((values >= 0).all() and (values < len(levels)).all()))
                    values = np.array(levels, str)[values]
                columns[entry["name"]] = values
            dates = tuple(saved["dates"])
            _require(len(columns) == len(saved["columns"]) and set(dates) <= set(columns))
            for name in dates:
                _require(columns[name].dtype == np.float64 and not (np.abs(columns[name]) > MOST_DAYS).any())
        except (KeyError, TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
            raise WonderlandError(
                "context.safetensors holds no reference rows that can be read: it is damaged."
            ) from error
        return Reference(columns, predictions, y, None if classes is None else tuple(classes), rows, dates)


def names_of(values: ndarray) -> ndarray:
    """Categories as text, cut so that one long cell does not set the width of the array. Shapes: (n,) -> (n,)."""
    return np.array([str(value)[: LONGEST_NAME + 1] for value in values.tolist()], str)


def days(values: ndarray) -> ndarray:
    """Dates as days since 1970, NaN where missing; anything else as it is. Shapes: (n,) -> (n,)."""
    if values.dtype.kind != "M":
        return values
    seconds = values.astype("datetime64[s]")
    return np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / 86400)


def _require(good: bool) -> None:
    if not good:
        raise ValueError


def _has_rare(text: ndarray) -> bool:
    """Whether categories are rare enough that it depends on the sample which of them are common."""
    names, counts = np.unique(text, return_counts=True)
    return OTHER in names or bool(counts.min() < OFTEN)


def _common(text: ndarray) -> ndarray:
    """Categories with two rows or more, the most frequent ones; all others are one."""
    names, counts = np.unique(text, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:LEVELS]
    kept = [name for name in names[frequent[counts[frequent] >= FEWEST]] if len(name) <= LONGEST_NAME]
    return np.where(np.isin(text, kept), text, OTHER)
