"""Column kinds: what a column of cells holds, inferred from the cells.

Seven kinds: number, boolean, date, category, text, identifier, constant. Cells that say "NA", "?" or "-" are missing.
An integer column with few values stays a number, because a model can use the order of numbers; integers that are only names
should be given as text, or as a pandas category.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from wonderland.data.cells import LARGEST_EXACT, evenly_spaced, to_levels, to_supported_type
from wonderland.data.dates import (
    DAY,
    MIXED,
    days_since_1970,
    detect_date_format,
    detect_mixed_formats,
    parse_dates_or_iso,
)
from wonderland.data.numbers import parse_numbers

ColumnKind = Literal["number", "boolean", "date", "category", "text", "identifier", "constant"]
COLUMN_KINDS: tuple[str, ...] = get_args(ColumnKind)
BOOLEAN_WORDS = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("off", "on"))
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{24,}")
_DATE_ADVICE = "Write dates in one format, such as 2024-01-31"
_ID_NAME = re.compile(r"(?:^|[\s_.-])(?:id|uuid|guid|key|index|idx|rowid|rownum|row|no|nr)$", re.I)


@dataclass(frozen=True)
class Column:
    """A column after reading: numbers, booleans (0, 1) and dates (days since 1970) as float64 with NaN for missing; every other
    kind as int64 codes into `levels`, with -1 for missing.

    `format` is that of dates, `boolean_words` are the words for 0 and 1, `whole` says that all numbers are integers. `unread`
    counts cells that do not fit the kind and became missing; `unread_example` is one of them. `note` is a doubt about dates, or about large integers.
    """

    name: str
    kind: str
    values: np.ndarray
    levels: np.ndarray | None = None
    format: str = ""
    boolean_words: tuple[str, str] | None = None
    unread: int = 0
    unread_example: str = ""
    whole: bool = False
    note: str = ""

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def is_missing(self) -> np.ndarray:
        """Which cells are missing."""
        return self.values < 0 if self.levels is not None else np.isnan(self.values)

    @cached_property
    def missing(self) -> int:
        """How many cells are missing."""
        return int(self.is_missing.sum())

    @cached_property
    def distinct(self) -> int:
        """How many different values occur, missing not counted."""
        return len(pd.unique(self.values[~self.is_missing]))

    def take(self, rows: np.ndarray) -> "Column":
        """The same column with these rows only."""
        return replace(self, values=self.values[rows])

    def codes(self) -> tuple[np.ndarray, int]:
        """Each cell as a code 0..k-1, missing as a value of its own, and k."""
        codes, distinct = pd.factorize(self.values, use_na_sentinel=False)
        return codes, len(distinct)

    def cell(self, i: int) -> Any:
        """One value as a Python number or text; None when missing."""
        if self.is_missing[i]:
            return None
        value = self.values[i]
        if self.levels is not None:
            return str(self.levels[value])
        if self.kind == "date":
            moment = np.datetime64(0, "us") + np.timedelta64(round(float(value) * DAY), "us")
            text = str(moment.astype("datetime64[s]")).replace("T", " ")
            return text.removesuffix(" 00:00:00")
        if self.boolean_words is not None:
            return self.boolean_words[int(value)]
        return int(value) if self.whole and abs(value) < 2**53 else float(value)

    def examples(self, count: int = 3) -> list[Any]:
        """The first few different values."""
        first = pd.Series(self.values).drop_duplicates().index.to_numpy()
        return [self.cell(i) for i in first[: count + 1] if not self.is_missing[i]][:count]


def read_column(name: str, cells: pd.Series) -> Column:
    """Infer the kind of a column, and convert its cells.

    >>> read_column("price", pd.Series(["1,200", " 950", "n/a", "1,010"])).values.tolist()
    [1200.0, 950.0, nan, 1010.0]
    >>> read_column("seen", pd.Series(["yes", "no", "?"])).kind
    'boolean'
    """
    cells = to_supported_type(name, cells)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return _category_column(name, *to_levels(cells), kind="category")
    if pd.api.types.is_bool_dtype(cells.dtype):
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        return _constant_if_one_value(Column(name, "boolean", values, boolean_words=("False", "True")))
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return _number_column(
            name, cells.to_numpy(dtype=np.float64, na_value=np.nan), pd.api.types.is_integer_dtype(cells.dtype)
        )
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return _constant_if_one_value(Column(name, "date", days_since_1970(cells), format="ISO8601"))
    return _text_column(name, *to_levels(cells))


def read_as(like: Column, cells: pd.Series) -> Column:
    """Convert new cells to the kind of an earlier column; cells that do not fit become missing, and are counted in `unread`."""
    cells = to_supported_type(like.name, cells)
    if like.kind in ("category", "text", "identifier", "constant"):
        codes, levels = to_levels(cells)
        return replace(like, values=codes, levels=levels, unread=0)
    if pd.api.types.is_bool_dtype(cells.dtype) or pd.api.types.is_numeric_dtype(cells.dtype):
        if like.kind == "date":
            empty = np.full(len(cells), np.nan)
            return replace(like, values=empty, unread=int(cells.notna().sum()))
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        unfit = np.zeros(len(values), bool)
        if like.kind == "boolean":
            unfit = ~np.isnan(values) & (values != 0) & (values != 1)
            values = np.where(unfit, np.nan, values)
        return replace(like, values=values, unread=int(unfit.sum()))
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        if like.kind == "date":
            return replace(like, values=days_since_1970(cells), unread=0)
        return replace(like, values=np.full(len(cells), np.nan), unread=int(cells.notna().sum()))
    codes, levels = to_levels(cells)
    if like.kind == "boolean":
        converted = _parse_booleans(levels, like.boolean_words)
    elif like.kind == "date":
        converted = parse_dates_or_iso(levels, like.format)
    else:
        converted = parse_numbers(levels)
    values = _to_cells(converted, codes)
    return replace(
        like,
        values=values,
        unread=int((np.isnan(values) & (codes >= 0)).sum()),
        unread_example=_first_unread(levels, converted),
    )


def _parse_booleans(levels: np.ndarray, boolean_words: tuple[str, str] | None) -> np.ndarray:
    """0 for the word that means no, 1 for the word that means yes, NaN for anything else.

    A column that used one of the usual pairs of words also accepts the others: a model trained on yes and no reads true and false.
    """
    no, yes = (word.casefold() for word in boolean_words or ("0", "1"))
    value_of = {no: 0.0, yes: 1.0, "0": 0.0, "1": 1.0}
    for pair in (*BOOLEAN_WORDS, ("0", "1")):
        if (no, yes) == pair:
            value_of |= {word: float(side) for words in BOOLEAN_WORDS for side, word in enumerate(words)} | value_of
    return np.array([value_of.get(text.casefold(), np.nan) for text in levels], dtype=np.float64)


def _first_unread(levels: np.ndarray, converted: np.ndarray) -> str:
    """The first level that could not be converted, or ""."""
    return next((str(levels[i]) for i in np.flatnonzero(np.isnan(converted))), "")


def _to_cells(converted: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The value of each cell, from the values of the levels."""
    return np.append(converted, np.nan)[codes]


def _constant_if_one_value(column: Column) -> Column:
    if column.distinct == 0 or (column.distinct == 1 and column.missing == 0):
        return replace(column, kind="constant")
    return column


def _number_column(name: str, values: np.ndarray, integer: bool) -> Column:
    """A column of numbers: a boolean when they are 0 and 1, an identifier when integers count the rows or the name says so."""
    present = values[~np.isnan(values)]
    whole = integer or bool(len(present) and np.isfinite(present).all() and (present == np.rint(present)).all())
    column = _constant_if_one_value(Column(name, "number", values, whole=whole))
    if column.kind == "constant" or not whole:
        return column
    if column.distinct == 2 and set(pd.unique(present)) == {0.0, 1.0}:
        return replace(column, kind="boolean", boolean_words=("0", "1"))
    if column.missing == 0 and column.distinct == len(column):
        start, stop = present.min(), present.max()
        counts = start in (0, 1) and stop - start + 1 == len(column) and len(column) >= 20
        if counts or _is_id_name(name):
            return replace(column, kind="identifier")
    return column


def _is_id_name(name: str) -> bool:
    """Whether a column is called like an identifier: "id", "user_id", "customerId"."""
    name = re.sub(r"[\W_]+$", "", name)  # as in "ID #"
    return bool(_ID_NAME.search(name) or re.search(r"[a-z](?:Id|ID)$", name))


def _text_column(name: str, codes: np.ndarray, levels: np.ndarray) -> Column:
    """A column of texts: booleans, numbers or dates written as text, else categories, free text or identifiers."""
    if len(levels) == 0:
        return Column(name, "constant", np.full(len(codes), np.nan))
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    folded = {text.casefold(): text for text in levels} if len(levels) <= 8 else {}
    if (words := tuple(sorted(folded))) in BOOLEAN_WORDS:
        pair = (folded[words[0]], folded[words[1]])
        return Column(name, "boolean", _to_cells(_parse_booleans(levels, pair), codes), boolean_words=pair)
    if _are_long_integers(levels):
        note = "holds whole numbers of 16 digits or more, which no float holds exactly: they are read as names"
        return replace(_category_column(name, codes, levels, kind=""), note=note)
    if len(levels) < 1000 or np.isnan(parse_numbers(evenly_spaced(levels, 1000))).mean() < 0.6:
        converted = parse_numbers(levels)
        unconverted = np.isnan(converted)
        share = 1 - counts[unconverted].sum() / counts.sum()
        if share >= 0.95 or (share >= 0.8 and unconverted.sum() <= 3):
            column = _number_column(name, _to_cells(converted, codes), integer=False)
            return (
                replace(column, unread=int(counts[unconverted].sum()), unread_example=_first_unread(levels, converted))
                if unconverted.any()
                else column
            )
    date_format, ambiguous, converted = detect_date_format(levels)
    if not date_format:
        date_format, converted = detect_mixed_formats(levels)
    if date_format:
        values = _to_cells(converted, codes)
        unread = int((np.isnan(values) & (codes >= 0)).sum())
        first = "month" if date_format.startswith("%m") else "day"
        note = (
            f"could have the day or the month first; it is read with the {first} first ({date_format}). {_DATE_ADVICE}"
        )
        if date_format in MIXED:
            first = "month" if date_format == MIXED[0] else "day"
            note = f"holds dates in several formats; where day and month are in doubt, the {first} is first. {_DATE_ADVICE}"
        note = note if ambiguous or date_format in MIXED else ""
        unread_example = _first_unread(levels, converted)
        return _constant_if_one_value(
            Column(name, "date", values, format=date_format, unread=unread, unread_example=unread_example, note=note)
        )
    return _category_column(name, codes, levels, kind="")


def _are_long_integers(levels: np.ndarray) -> bool:
    """Whether the texts are integers, and some too large for a float to hold exactly."""
    if not any(len(text) > 15 and text.lstrip("+-").isdecimal() for text in evenly_spaced(levels, 1000)):
        return False
    digits = [text.lstrip("+-") for text in levels]
    return all(map(str.isdecimal, digits)) and any(len(text) > 15 and int(text[:40]) > LARGEST_EXACT for text in digits)


def _category_column(name: str, codes: np.ndarray, levels: np.ndarray, kind: str) -> Column:
    """A column of the given kind; without one, free text, an identifier or a category, by how long and how different the texts are."""
    column = Column(name, kind or "category", codes, levels)
    present = len(column) - column.missing
    if len(levels) == 0 or (len(levels) == 1 and column.missing == 0):
        return replace(column, kind="constant")
    if kind:
        return column
    sample = evenly_spaced(levels, 1000)
    words = float(np.mean([len(text.split()) for text in sample]))
    length = float(np.mean([len(text) for text in sample]))
    several_words = 2.5 if len(levels) <= 0.5 * present else 1.8
    if len(levels) > max(20, 0.2 * present) and (words >= several_words or length > 40) and not _are_uuids(sample):
        return replace(column, kind="text")
    if len(levels) >= 0.95 * present and present >= 10:
        return replace(column, kind="identifier")
    if len(levels) == present and _is_id_name(name):
        return replace(column, kind="identifier")
    return column


def _are_uuids(sample: np.ndarray) -> bool:
    return sum(bool(_UUID.fullmatch(text)) for text in sample) >= 0.95 * len(sample)
