"""Column kinds: what a column of cells holds, read from the cells themselves.

Seven kinds: number, boolean, date, category, text, identifier, constant. Cells that say "NA", "?" or "-" are missing.
An integer column with few values stays a number (an order is information a model can use); integers that are only names
should be given as text, or as a pandas category.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from wonderland.data.cells import as_levels, plain, thinned
from wonderland.data.dates import DAY, MIXED, dates_or_iso, days_since_1970, find_dates, find_mixed_dates
from wonderland.data.numbers import numbers

Kind = Literal["number", "boolean", "date", "category", "text", "identifier", "constant"]
KINDS: tuple[str, ...] = get_args(Kind)
PAIRS = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("off", "on"))
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{24,}")
_ONE_WAY = "Write dates in one format, such as 2024-01-31"
_ID = re.compile(r"(?:^|[\s_.-])(?:id|uuid|guid|key|index|idx|rowid|rownum|row|no|nr)$", re.I)


@dataclass(frozen=True)
class Column:
    """A column, read: numbers, booleans (0, 1) and dates (days since 1970) as float64 with NaN for missing; every other
    kind as int64 codes into `levels`, with -1 for missing.

    `unread` counts cells that say something other than the kind allows; they became missing. `stray` is one of them.
    """

    name: str
    kind: str
    values: np.ndarray
    levels: np.ndarray | None = None
    format: str = ""
    pair: tuple[str, str] | None = None
    unread: int = 0
    stray: str = ""
    whole: bool = False
    note: str = ""

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def absent(self) -> np.ndarray:
        """Which cells are missing."""
        return self.values < 0 if self.levels is not None else np.isnan(self.values)

    @cached_property
    def missing(self) -> int:
        return int(self.absent.sum())

    @cached_property
    def distinct(self) -> int:
        """How many different values occur, missing not counted."""
        return len(pd.unique(self.values[~self.absent]))

    def take(self, rows: np.ndarray) -> "Column":
        """The same column with these rows only."""
        return replace(self, values=self.values[rows])

    def codes(self) -> tuple[np.ndarray, int]:
        """Each cell as a code 0..k-1, missing as a value of its own, and k."""
        codes, found = pd.factorize(self.values, use_na_sentinel=False)
        return codes, len(found)

    def cell(self, i: int) -> Any:
        """One value as a person would write it; None when missing."""
        if self.absent[i]:
            return None
        value = self.values[i]
        if self.levels is not None:
            return str(self.levels[value])
        if self.kind == "date":
            moment = np.datetime64(0, "us") + np.timedelta64(round(float(value) * DAY), "us")
            text = str(moment.astype("datetime64[s]")).replace("T", " ")
            return text.removesuffix(" 00:00:00")
        if self.pair is not None:
            return self.pair[int(value)]
        return int(value) if self.whole and abs(value) < 2**53 else float(value)

    def examples(self, count: int = 3) -> list[Any]:
        """The first few different values."""
        first = pd.Series(self.values).drop_duplicates().index.to_numpy()
        return [self.cell(i) for i in first[: count + 1] if not self.absent[i]][:count]


def read_column(name: str, cells: pd.Series) -> Column:
    """Infer what a column holds, and read it.

    >>> read_column("price", pd.Series(["1,200", " 950", "n/a", "1,010"])).values.tolist()
    [1200.0, 950.0, nan, 1010.0]
    >>> read_column("seen", pd.Series(["yes", "no", "?"])).kind
    'boolean'
    """
    cells = plain(name, cells)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return _named(name, *as_levels(cells), kind="category")
    if pd.api.types.is_bool_dtype(cells.dtype):
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        return _constant_if_one(Column(name, "boolean", values, pair=("False", "True")))
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return _numeric(
            name, cells.to_numpy(dtype=np.float64, na_value=np.nan), pd.api.types.is_integer_dtype(cells.dtype)
        )
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return _constant_if_one(Column(name, "date", days_since_1970(cells), format="ISO8601"))
    return _worded(name, *as_levels(cells))


def read_as(like: Column, cells: pd.Series) -> Column:
    """Read new cells as the kind that an earlier column had; what does not fit is missing, and counted in `unread`."""
    cells = plain(like.name, cells)
    if like.kind in ("category", "text", "identifier", "constant"):
        codes, levels = as_levels(cells)
        return replace(like, values=codes, levels=levels, unread=0)
    if pd.api.types.is_bool_dtype(cells.dtype) or pd.api.types.is_numeric_dtype(cells.dtype):
        if like.kind == "date":
            gone = np.full(len(cells), np.nan)
            return replace(like, values=gone, unread=int(cells.notna().sum()))
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        lost = np.zeros(len(values), bool)
        if like.kind == "boolean":
            lost = ~np.isnan(values) & (values != 0) & (values != 1)
            values = np.where(lost, np.nan, values)
        return replace(like, values=values, unread=int(lost.sum()))
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        if like.kind == "date":
            return replace(like, values=days_since_1970(cells), unread=0)
        return replace(like, values=np.full(len(cells), np.nan), unread=int(cells.notna().sum()))
    codes, levels = as_levels(cells)
    if like.kind == "boolean":
        read = _truths(levels, like.pair)
    elif like.kind == "date":
        read = dates_or_iso(levels, like.format)
    else:
        read = numbers(levels)
    values = _spread(read, codes)
    return replace(like, values=values, unread=int((np.isnan(values) & (codes >= 0)).sum()), stray=_stray(levels, read))


def _truths(levels: np.ndarray, pair: tuple[str, str] | None) -> np.ndarray:
    """0 for the word that means no, 1 for the word that means yes, NaN for anything else."""
    no, yes = (word.casefold() for word in pair or ("0", "1"))
    known = {no: 0.0, yes: 1.0, "0": 0.0, "1": 1.0}
    for family in (*PAIRS, ("0", "1")):
        if (no, yes) == family:
            known |= {word: float(side) for other in PAIRS for side, word in enumerate(other)} | known
    return np.array([known.get(text.casefold(), np.nan) for text in levels], dtype=np.float64)


def _stray(levels: np.ndarray, read: np.ndarray) -> str:
    """The first text that could not be read, or ""."""
    return next((str(levels[i]) for i in np.flatnonzero(np.isnan(read))), "")


def _spread(read: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Values of levels, put back to their cells."""
    return np.append(read, np.nan)[codes]


def _constant_if_one(column: Column) -> Column:
    if column.distinct == 0 or (column.distinct == 1 and column.missing == 0):
        return replace(column, kind="constant")
    return column


def _numeric(name: str, values: np.ndarray, integer: bool) -> Column:
    present = values[~np.isnan(values)]
    whole = integer or bool(len(present) and np.isfinite(present).all() and (present == np.rint(present)).all())
    column = _constant_if_one(Column(name, "number", values, whole=whole))
    if column.kind == "constant" or not whole:
        return column
    if column.distinct == 2 and set(pd.unique(present)) == {0.0, 1.0}:
        return replace(column, kind="boolean", pair=("0", "1"))
    if column.missing == 0 and column.distinct == len(column):
        start, stop = present.min(), present.max()
        counts = start in (0, 1) and stop - start + 1 == len(column) and len(column) >= 20
        if counts or _called_id(name):
            return replace(column, kind="identifier")
    return column


def _called_id(name: str) -> bool:
    name = re.sub(r"[\W_]+$", "", name)  # as in "ID #"
    return bool(_ID.search(name) or re.search(r"[a-z](?:Id|ID)$", name))


def _worded(name: str, codes: np.ndarray, levels: np.ndarray) -> Column:
    """The kind of a column of texts: a boolean, a number or a date written as text, or else names, text, identifiers."""
    if len(levels) == 0:
        return Column(name, "constant", np.full(len(codes), np.nan))
    rows = np.bincount(codes[codes >= 0], minlength=len(levels))
    folded = {text.casefold(): text for text in levels} if len(levels) <= 8 else {}
    if (words := tuple(sorted(folded))) in PAIRS:
        pair = (folded[words[0]], folded[words[1]])
        return Column(name, "boolean", _spread(_truths(levels, pair), codes), pair=pair)
    if len(levels) < 1000 or np.isnan(numbers(thinned(levels, 1000))).mean() < 0.6:
        read = numbers(levels)
        wordy = np.isnan(read)
        share = 1 - rows[wordy].sum() / rows.sum()
        if share >= 0.95 or (share >= 0.8 and wordy.sum() <= 3):
            column = _numeric(name, _spread(read, codes), integer=False)
            return replace(column, unread=int(rows[wordy].sum()), stray=_stray(levels, read)) if wordy.any() else column
    form, unsure, read = find_dates(levels)
    if not form:
        form, read = find_mixed_dates(levels)
    if form:
        values = _spread(read, codes)
        lost = int((np.isnan(values) & (codes >= 0)).sum())
        first = "month" if form.startswith("%m") else "day"
        note = f"could have the day or the month first; it is read with the {first} first ({form}). {_ONE_WAY}"
        if form in MIXED:
            first = "month" if form == MIXED[0] else "day"
            note = f"holds dates in several formats; where day and month are in doubt, the {first} is first. {_ONE_WAY}"
        note = note if unsure or form in MIXED else ""
        stray = _stray(levels, read)
        return _constant_if_one(Column(name, "date", values, format=form, unread=lost, stray=stray, note=note))
    return _named(name, codes, levels, kind="")


def _named(name: str, codes: np.ndarray, levels: np.ndarray, kind: str) -> Column:
    column = Column(name, kind or "category", codes, levels)
    present = len(column) - column.missing
    if len(levels) == 0 or (len(levels) == 1 and column.missing == 0):
        return replace(column, kind="constant")
    if kind:
        return column
    sample = thinned(levels, 1000)
    words = float(np.mean([len(text.split()) for text in sample]))
    length = float(np.mean([len(text) for text in sample]))
    if len(levels) > max(20, 0.2 * present) and (words >= 2.5 or length > 40) and not _uuids(sample):
        return replace(column, kind="text")
    if len(levels) >= 0.95 * present and present >= 10:
        return replace(column, kind="identifier")
    if len(levels) == present and _called_id(name):
        return replace(column, kind="identifier")
    return column


def _uuids(sample: np.ndarray) -> bool:
    return sum(bool(_UUID.fullmatch(text)) for text in sample) >= 0.95 * len(sample)
