"""Column encodings: how one column becomes numbers or a code, learned from the training rows only.

Dates become days, and sine and cosine of month, weekday and hour; texts become lengths and the main directions of their
words; categories become codes. Code 0 stands for every category that was never seen, and for those with a single row where these are
many (`least_rows`). Where there are more
categories than codes, the rarest share codes, which a hash of their name decides.
"""

import math
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.data.cells import levels_of_few
from wonderland.data.columns import Column, read_as
from wonderland.data.dates import DATE_FORMATS, MIXED
from wonderland.data.encoder import Field
from wonderland.kinds.table.table import least_rows
from wonderland.kinds.table.text_features import BUCKETS, TextFeatures, hashed_counts, split_words

MAX_LEVELS = 10_000
SHARED_CODES = 2048
CYCLES = {"month": 12, "weekday": 7, "hour": 24}
LARGEST = 1e150
FEW_CELLS = 64  # texts of fewer rows are read one by one, which takes less time than pandas' calls


@dataclass(frozen=True)
class ColumnEncoding:
    """How one column is encoded. `fill` replaces a missing value; `flagged` adds a feature that marks them.

    `format`, `pair` (the words for 0 and 1) and `levels` tell how to read new cells; `parts` are the features of a date, `text`
    those of a text. `shared` is the number of codes that all other categories share."""

    name: str
    kind: str
    fill: float = 0.0
    flagged: bool = False
    format: str = ""
    pair: tuple[str, str] | None = None
    parts: tuple[str, ...] = ()
    levels: tuple[str | None, ...] = ()
    shared: int = 0
    text: TextFeatures | None = field(default=None, compare=False)

    @classmethod
    def fit(cls, column: Column, ordering: bool = False) -> "ColumnEncoding":
        """The encoding for a column of training cells; for the time column (`ordering`), only the cycles, since future days lie outside of the training range."""
        present = column.values[~column.is_missing]
        flagged = column.missing > 0
        if column.kind == "category":
            levels, left = _frequent(column)
            return cls(column.name, "category", levels=levels, shared=SHARED_CODES if left else 0)
        if column.kind == "text":
            assert column.levels is not None
            return cls(column.name, "text", flagged=flagged, text=TextFeatures.fit(column.levels, present))
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
            if self.text is None:
                features += [(f"{name} word group {i}", True) for i in range(BUCKETS)]
            else:
                features += [(f"{name} topic {i + 1}", False) for i in range(self.text.dimensions)]
        return features + ([(f"{name} is missing", False)] if self.flagged else [])

    def values(self, column: Column) -> np.ndarray:
        """The numbers, before scaling: (n, features)."""
        if self.kind == "text":
            block = list(self._text_values(column).T)
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
        if len(block) == 1:
            return block[0][:, None]
        return np.stack(block, 1) if block else np.empty((len(column), 0))

    def codes(self, column: Column) -> np.ndarray:
        """Category codes: 1.. for the known levels, 0 for every other one, unless the others share codes."""
        assert column.levels is not None
        known = {level: code for code, level in enumerate(self.levels, start=1)}
        places = [known.get(level) or self._shared_code(level) for level in column.levels] + [known.get(None, 0)]
        return np.array(places, np.int64)[column.values]

    def _shared_code(self, level: str) -> int:
        if not self.shared:
            return 0
        return len(self.levels) + 1 + zlib.crc32(level.encode("utf-8", "surrogatepass")) % self.shared

    @property
    def code_count(self) -> int:
        """The number of codes of a category, the unknown one included."""
        return len(self.levels) + 1 + self.shared

    def _text_values(self, column: Column) -> np.ndarray:
        """Log length, log number of words, and the features of the words: (n, 2 + k); zeros where missing."""
        assert column.levels is not None
        sizes = np.array([[len(text), len(split_words(text))] for text in column.levels], np.float64).reshape(-1, 2)
        words = hashed_counts(column.levels) if self.text is None else self.text.values(column.levels)
        table = np.concatenate([np.log1p(sizes), words], 1)
        return np.concatenate([table, np.zeros((1, table.shape[1]))])[column.values]

    def field(self) -> Field:
        """The column as a field of an input."""
        levels = tuple(level for level in self.levels if level is not None) or (self.pair or ())
        return Field(self.name, self.kind, levels=levels)

    def like(self) -> Column:
        """An empty column of this kind, as the template for `read_as`."""
        return Column(self.name, self.kind, np.empty(0), format=self.format, boolean_words=self.pair)

    def to_json(self) -> dict[str, Any]:
        default = asdict(ColumnEncoding(self.name, self.kind))
        plain = asdict(replace(self, text=None))
        used = {key: value for key, value in plain.items() if key in ("name", "kind") or value != default[key]}
        used |= {} if self.text is None else {"words": self.text.words}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in used.items()}


def read_columns(encodings: Sequence[ColumnEncoding], frame: pd.DataFrame) -> list[Column]:
    """The cells of each encoding's column. Columns that hold numbers already are taken in one piece, and so are texts of a few rows."""
    place = {str(name): i for i, name in enumerate(frame.columns)}
    types = list(frame.dtypes)
    kinds = [getattr(kind, "kind", "") for kind in types]
    plain = [e.name for e in encodings if e.kind == "number" and kinds[place[e.name]] in ("f", "i", "u")]
    numbers = frame.iloc[:, [place[name] for name in plain]].to_numpy(np.float64, na_value=np.nan)
    values = {name: np.ascontiguousarray(numbers[:, i]) for i, name in enumerate(plain)}
    named = [
        e.name
        for e in encodings
        if len(frame) <= FEW_CELLS
        and e.kind in ("category", "text")
        and isinstance(types[place[e.name]], pd.StringDtype)
    ]
    cells = frame.iloc[:, [place[name] for name in named]].to_numpy(object) if named else np.empty((0, 0))
    texts = {name: cells[:, i] for i, name in enumerate(named)}
    columns = []
    for encoding in encodings:
        if encoding.name in values:
            columns.append(Column(encoding.name, "number", values[encoding.name]))
        elif encoding.name in texts:
            codes, levels = levels_of_few(texts[encoding.name])
            columns.append(Column(encoding.name, encoding.kind, codes, levels))
        else:
            columns.append(read_as(encoding.like(), frame.iloc[:, place[encoding.name]]))
    return columns


def _frequent(column: Column) -> tuple[tuple[str | None, ...], bool]:
    """The levels that get a code of their own, and whether some are left: the most frequent, in alphabetical order; None at the end
    when cells are missing."""
    assert column.levels is not None
    counts = np.bincount(column.values[~column.is_missing], minlength=len(column.levels))
    least = least_rows(counts)
    by_frequency = sorted((-int(counts[code]), str(column.levels[code])) for code in np.flatnonzero(counts >= least))
    names = sorted(name for _, name in by_frequency[:MAX_LEVELS])
    return ((*names, None) if column.missing else tuple(names)), len(by_frequency) > MAX_LEVELS


def _cycle_positions(days: np.ndarray) -> dict[str, np.ndarray]:
    """Month (0..11), weekday (Monday is 0) and hour (with its fraction) of days since 1970; 0 where missing."""
    days = np.clip(np.nan_to_num(days), -1e6, 1e7)
    whole = np.floor(days)
    months = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    hours = np.round((days - whole) * 86400) / 3600
    return {"month": (months % 12).astype(float), "weekday": (whole + 3) % 7, "hour": hours % 24}


def read_encoding(entry: Any, tensors: dict[str, Any] | None = None) -> ColumnEncoding:
    """One saved encoding, checked; `tensors` are those of a text column."""
    require(isinstance(entry, dict), "a column is not an object")
    name, kind = entry.get("name"), entry.get("kind")
    require(is_text(name), "a column has no name")
    about = f"column {name[:60]!r}"
    require(kind in ("number", "boolean", "date", "text", "category"), f"{about} has no known kind")
    fields = {"name", "kind", "fill", "flagged", "format", "pair", "parts", "levels", "shared", "words"}
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
    shared = entry.get("shared", 0)
    require(
        shared in (0, SHARED_CODES) and (kind == "category" or not shared), f"{about} shares an unknown number of codes"
    )
    require(kind == "text" or "words" not in entry, f"{about} has words, but is {kind}")
    text = None
    if "words" in entry:
        try:
            text = TextFeatures.read(entry["words"], tensors or {})
        except WonderlandError as error:
            require(False, f"{about}: {error}")
    pair = tuple(pair) if pair else None
    return ColumnEncoding(
        name, kind, float(fill), flagged, date_format, pair, tuple(parts), tuple(levels), shared, text
    )


def require(good: bool, problem: str) -> None:
    """Refuse a saved encoder with the problem found in it."""
    if not good:
        raise WonderlandError(f"The saved preprocessing is damaged or not ours: {problem}.")


def is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 10_000


def are_texts(value: Any, most: int) -> bool:
    return isinstance(value, list | tuple) and len(value) <= most and all(isinstance(item, str) for item in value)
