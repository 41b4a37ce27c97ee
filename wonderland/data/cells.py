"""Cells: which are missing, and one label for each value, whether it was read from a file, a frame or an array."""

import re
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError

MISSING = frozenset(
    {
        "",
        "na",
        "n/a",
        "n.a.",
        "#n/a",
        "nan",
        "null",
        "none",
        "nil",
        "?",
        "-",
        "--",
        ".",
        "missing",
        "<na>",
        "nat",
        "#null!",
    }
)
# Matches at the start and at the end of texts that are missing or have to be rewritten as labels. Three short patterns are
# much faster to search for than one with alternatives.
_START = re.compile(
    r"\n(?=\s|(?:true|false|" + "|".join(re.escape(word) for word in sorted(MISSING - {""})) + r")\n)", re.I
)
_ENDS = (re.compile(r"\s(?=\n)"), re.compile(r"\.0+(?=\n)"))
LARGEST_EXACT = 2**53
_WHOLE = re.compile(r"[+-]?\d+\.0+")


def to_supported_type(name: str, cells: pd.Series) -> pd.Series:
    """The cells in one of the supported types: booleans, numbers, timestamps, categories, or anything that prints as text."""
    dtype = cells.dtype
    if isinstance(dtype, pd.StringDtype):
        return cells
    if pd.api.types.is_complex_dtype(dtype):
        raise WonderlandError(
            f"Column {name!r} holds complex numbers. Give their real and imaginary parts as two columns."
        )
    if pd.api.types.is_timedelta64_dtype(dtype):
        return cells / pd.Timedelta(days=1)
    if isinstance(dtype, pd.PeriodDtype):
        return cells.dt.to_timestamp()
    if pd.api.types.is_object_dtype(dtype):
        inferred = pd.api.types.infer_dtype(cells, skipna=True)
        if inferred == "boolean":
            return cells.astype("boolean")
        if inferred == "integer" and beyond_floats(cells):
            return cells.map(str, na_action="ignore")
        if inferred in ("integer", "floating", "mixed-integer-float", "decimal"):
            return cells.map(float, na_action="ignore").astype(np.float64)
        if inferred == "mixed" and any(isinstance(cell, list | dict | tuple | set | np.ndarray) for cell in cells):
            raise WonderlandError(
                f"Column {name!r} holds nested values (lists or objects). Unpack it into plain columns."
            )
        if inferred == "bytes":
            return cells.map(lambda cell: cell.decode(errors="replace"), na_action="ignore")
    if pd.api.types.is_integer_dtype(dtype) and beyond_floats(cells):
        return cells.astype(object).map(str, na_action="ignore")
    return cells


def beyond_floats(integers: pd.Series) -> bool:
    """Whether some of these integers are larger than those that a float holds exactly: they are names, not amounts."""
    return len(integers) > 0 and bool(integers.max() > LARGEST_EXACT or integers.min() < -LARGEST_EXACT)


def to_levels(cells: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Cells as codes into their different labels, in order of appearance; -1 where missing.

    A label is the text without outer blanks; 3.0 and "3.0" are "3", true is "True": the same label for a
    file, a frame and an array.
    """
    codes, distinct = pd.factorize(cells)
    levels = np.array(distinct, dtype=object)
    unusual = _may_need_label(levels)
    if len(unusual) == 0:
        return codes.astype(np.int64), levels
    levels[unusual] = [label(value) for value in levels[unusual]]
    missing = [i for i in unusual if str(levels[i]).casefold() in MISSING]
    if missing or len(set(levels)) < len(levels):
        levels[missing] = None
        recoded, remaining = pd.factorize(levels)
        codes, levels = np.append(recoded, -1)[codes], np.asarray(remaining, dtype=object)
    return codes.astype(np.int64), levels


def levels_of_few(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `to_levels` returns, for a few texts (and NaN where missing), without the cost of pandas' calls."""
    code_of: dict[str, int] = {}
    codes = np.full(len(cells), -1, np.int64)
    for i, cell in enumerate(cells):
        if isinstance(cell, str) and (text := label(cell)).casefold() not in MISSING:
            codes[i] = code_of.setdefault(text, len(code_of))
    return codes, np.array(list(code_of), dtype=object)


def _may_need_label(values: np.ndarray) -> np.ndarray:
    """Indices of values that may be missing or differ from their label, found by one search through the joined texts."""
    if len(values) == 0 or not pd.api.types.is_string_dtype(values):
        return np.arange(len(values))
    lines = "\n" + "\n".join(values) + "\n"
    hits = [match.end() for match in _START.finditer(lines)]
    hits += [match.start() for ending in _ENDS for match in ending.finditer(lines)]
    if not hits:
        return np.empty(0, np.int64)
    starts = np.cumsum([1] + [len(text) + 1 for text in values[:-1]])
    return np.unique(np.maximum(np.searchsorted(starts, hits, side="right") - 1, 0))


def evenly_spaced(texts: np.ndarray, size: int) -> np.ndarray:
    """About `size` of the texts, evenly spaced."""
    return texts[:: max(1, len(texts) // size)]


def label(value: Any) -> str:
    """The name of a value, the same whether it came as text, number or boolean.

    >>> label(3.0), label(" 3 "), label("3.0"), label(True), label("true")
    ('3', '3', '3', 'True', 'True')
    """
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str):
        if isinstance(value, float | np.floating) and float(value).is_integer() and abs(value) < 2**63:
            return str(int(value))
        return str(value)
    text = value.strip()
    if text[-2:] in (".0", "00") and _WHOLE.fullmatch(text):
        return text.split(".")[0]
    return text.title() if text[-1:] in ("e", "E") and text.casefold() in ("true", "false") else text
