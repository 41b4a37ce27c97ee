"""Column encodings: how one column becomes numbers or a code, learned from the training rows only.

Dates become days, and sine and cosine of month, weekday and hour; texts become lengths and hashed word counts; categories
become codes. Code 0 stands for every category that is rare or was never seen.
"""

import math
import re
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wonderland.core import WonderlandError
from wonderland.data.columns import Column
from wonderland.data.dates import DATE_FORMATS, MIXED
from wonderland.data.encoder import Field
from wonderland.kinds.table.table import RARE

MAX_LEVELS = 254
BUCKETS = 32
CYCLES = {"month": 12, "weekday": 7, "hour": 24}
LARGEST = 1e150


@dataclass(frozen=True)
class ColumnEncoding:
    """How one column is encoded. `fill` replaces a missing value; `flagged` adds a feature that marks them.

    `format`, `pair` (the words for 0 and 1) and `levels` tell how to read new cells; `parts` are the features of a date."""

    name: str
    kind: str
    fill: float = 0.0
    flagged: bool = False
    format: str = ""
    pair: tuple[str, str] | None = None
    parts: tuple[str, ...] = ()
    levels: tuple[str | None, ...] = ()

    @classmethod
    def fit(cls, column: Column, ordering: bool = False) -> "ColumnEncoding":
        """The encoding for a column of training cells; for the time column (`ordering`), only the cycles, since future days lie outside of the training range."""
        present = column.values[~column.is_missing]
        flagged = column.missing > 0
        if column.kind == "category":
            return cls(column.name, "category", levels=_frequent(column))
        if column.kind == "text":
            return cls(column.name, "text", flagged=flagged)
        if column.kind == "boolean":
            return cls(column.name, "boolean", 0.5, flagged, pair=column.boolean_words)
        fill = float(np.median(np.clip(present, -LARGEST, LARGEST))) if len(present) else 0.0
        if column.kind == "number":
            return cls(column.name, "number", fill, flagged)
        assert column.kind == "date", column.kind
        cycles = [part for part, phase in _cycle_positions(present).items() if len(np.unique(phase)) > 1]
        return cls(
            column.name, "date", fill, flagged, column.format, parts=tuple(cycles if ordering else ["days", *cycles])
        )

    def features(self) -> list[tuple[str, bool]]:
        """The name of each number this column becomes, and whether it is scaled."""
        name, features = self.name, []
        if self.kind == "number":
            features = [(name, True)]
        elif self.kind == "boolean":
            features = [(name, False)]
        elif self.kind == "date":
            features = [(f"{name} {part}", True) for part in self.parts if part == "days"]
            features += [
                (f"{name} {part} {side}", False) for part in self.parts if part != "days" for side in ("sin", "cos")
            ]
        elif self.kind == "text":
            features = [(f"{name} length", True), (f"{name} words", True)]
            features += [(f"{name} word group {i}", True) for i in range(BUCKETS)]
        return features + ([(f"{name} is missing", False)] if self.flagged else [])

    def values(self, column: Column) -> np.ndarray:
        """The numbers, before scaling: (n, features)."""
        if self.kind == "text":
            block = list(_text_features(column).T)
        else:
            filled = np.where(column.is_missing, self.fill, column.values)
            block = [filled] if self.kind != "date" or "days" in self.parts else []
        if self.kind == "date":
            phases = _cycle_positions(column.values)
            for part in self.parts:
                if part != "days":
                    angle = phases[part] * (2 * np.pi / CYCLES[part])
                    block += [
                        np.where(column.is_missing, 0, np.sin(angle)),
                        np.where(column.is_missing, 0, np.cos(angle)),
                    ]
        if self.flagged:
            block.append(column.is_missing.astype(np.float64))
        return np.stack(block, 1) if block else np.empty((len(column), 0))

    def codes(self, column: Column) -> np.ndarray:
        """Category codes: 1.. for the known levels, 0 for every other one."""
        assert column.levels is not None
        known = {level: code for code, level in enumerate(self.levels, start=1)}
        places = [known.get(level, 0) for level in column.levels] + [known.get(None, 0)]
        return np.array(places, np.int64)[column.values]

    def field(self) -> Field:
        """The column as a field of an input."""
        levels = tuple(level for level in self.levels if level is not None) or (self.pair or ())
        return Field(self.name, self.kind, levels=levels)

    def like(self) -> Column:
        """An empty column of this kind, as the template for `read_as`."""
        return Column(self.name, self.kind, np.empty(0), format=self.format, boolean_words=self.pair)

    def to_json(self) -> dict[str, Any]:
        default = asdict(ColumnEncoding(self.name, self.kind))
        used = {key: value for key, value in asdict(self).items() if key in ("name", "kind") or value != default[key]}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in used.items()}


def _frequent(column: Column) -> tuple[str | None, ...]:
    """The levels that get a code: the most frequent ones, in alphabetical order; None at the end when cells are missing."""
    assert column.levels is not None
    counts = np.bincount(column.values[~column.is_missing], minlength=len(column.levels))
    by_frequency = sorted((-int(counts[code]), str(column.levels[code])) for code in np.flatnonzero(counts >= RARE))
    names = sorted(name for _, name in by_frequency[:MAX_LEVELS])
    return (*names, None) if column.missing else tuple(names)


def _cycle_positions(days: np.ndarray) -> dict[str, np.ndarray]:
    """Month (0..11), weekday (Monday is 0) and hour (with its fraction) of days since 1970; 0 where missing."""
    days = np.clip(np.nan_to_num(days), -1e6, 1e7)
    whole = np.floor(days)
    months = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    hours = np.round((days - whole) * 86400) / 3600
    return {"month": (months % 12).astype(float), "weekday": (whole + 3) % 7, "hour": hours % 24}


def _text_features(column: Column) -> np.ndarray:
    """Log length, log number of words, and log counts of words in hashed groups: (n, 2 + groups); zeros where missing."""
    assert column.levels is not None
    table = np.zeros((len(column.levels) + 1, 2 + BUCKETS))
    for row, text in zip(table, column.levels, strict=False):
        words = re.findall(r"\w+", text.lower())
        row[:2] = len(text), len(words)
        for word in words:
            row[2 + zlib.crc32(word.encode("utf-8", "surrogatepass")) % BUCKETS] += 1
    return np.log1p(table)[column.values]


def read_encoding(entry: Any) -> ColumnEncoding:
    """One saved encoding, checked."""
    require(isinstance(entry, dict), "a column is not an object")
    name, kind = entry.get("name"), entry.get("kind")
    require(is_text(name), "a column has no name")
    about = f"column {name[:60]!r}"
    require(kind in ("number", "boolean", "date", "text", "category"), f"{about} has no known kind")
    fields = {"name", "kind", "fill", "flagged", "format", "pair", "parts", "levels"}
    require(set(entry) <= fields, f"{about} has a field that is not known")
    fill, flagged, date_format = entry.get("fill", 0.0), entry.get("flagged", False), entry.get("format", "")
    valid = (
        isinstance(fill, int | float) and not isinstance(fill, bool) and abs(fill) <= LARGEST and math.isfinite(fill)
    )
    require(valid, f"{about} has a fill value that is not a number")
    require(isinstance(flagged, bool), f"{about} does not say whether missing cells are flagged")
    require(
        date_format == ""
        if kind != "date"
        else isinstance(date_format, str) and date_format in (*DATE_FORMATS, *MIXED),
        f"{about} has no known date format",
    )
    pair, parts, levels = entry.get("pair"), entry.get("parts", []), entry.get("levels", [])
    require(pair is None or (are_texts(pair, 2) and len(pair) == 2), f"{about} has no pair of words for no and yes")
    known = isinstance(parts, list | tuple) and all(
        isinstance(part, str) and part in ("days", *CYCLES) for part in parts
    )
    require(known and len(set(parts)) == len(parts), f"{about} has parts of a date that are not known")
    require(kind == "date" or not parts, f"{about} has parts of a date that are not known")
    listed = isinstance(levels, list | tuple) and len(levels) <= MAX_LEVELS + 1
    require(
        listed and all(level is None or isinstance(level, str) for level in levels),
        f"{about} has no list of categories",
    )
    require(len(set(levels)) == len(levels), f"{about} has a category twice")
    require(kind == "category" or not levels, f"{about} has categories, but is {kind}")
    return ColumnEncoding(
        name, kind, float(fill), flagged, date_format, tuple(pair) if pair else None, tuple(parts), tuple(levels)
    )


def require(good: bool, problem: str) -> None:
    """Refuse a saved encoder with the problem found in it."""
    if not good:
        raise WonderlandError(f"The saved preprocessing is damaged or not ours: {problem}.")


def is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 10_000


def are_texts(value: Any, most: int) -> bool:
    return isinstance(value, list | tuple) and len(value) <= most and all(isinstance(item, str) for item in value)
