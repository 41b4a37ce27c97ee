"""Cells: which of them are missing, and the one label that each value has wherever it comes from."""

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
# What begins, and what ends, a text that is not its own label or means missing. Three short patterns are searched for
# much faster than one with alternatives.
_BEGINNING = re.compile(
    r"\n(?=\s|(?:true|false|" + "|".join(re.escape(word) for word in sorted(MISSING - {""})) + r")\n)", re.I
)
_ENDINGS = (re.compile(r"\s(?=\n)"), re.compile(r"\.0+(?=\n)"))
_WHOLE = re.compile(r"[+-]?\d+\.0+")


def plain(name: str, cells: pd.Series) -> pd.Series:
    """Cells of one of the few types we read: booleans, numbers, moments, categories or anything that prints as text."""
    dtype = cells.dtype
    if pd.api.types.is_complex_dtype(dtype):
        raise WonderlandError(
            f"Column {name!r} holds complex numbers. Give their real and imaginary parts as two columns."
        )
    if pd.api.types.is_timedelta64_dtype(dtype):
        return cells / pd.Timedelta(days=1)
    if isinstance(dtype, pd.PeriodDtype):
        return cells.dt.to_timestamp()
    if pd.api.types.is_object_dtype(dtype):
        found = pd.api.types.infer_dtype(cells, skipna=True)
        if found == "boolean":
            return cells.astype("boolean")
        if found in ("integer", "floating", "mixed-integer-float", "decimal"):
            return cells.map(float, na_action="ignore").astype(np.float64)
        if found == "mixed" and any(isinstance(cell, list | dict | tuple | set | np.ndarray) for cell in cells):
            raise WonderlandError(
                f"Column {name!r} holds nested values (lists or objects). Unpack it into plain columns."
            )
        if found == "bytes":
            return cells.map(lambda cell: cell.decode(errors="replace"), na_action="ignore")
    return cells


def as_levels(cells: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Cells as codes into their different labels, in order of appearance; -1 where missing.

    A label is the text without outer blanks; 3.0 and "3.0" are "3", true is "True": the label that a file, a frame and
    an array agree on.
    """
    codes, found = pd.factorize(cells)
    named = np.array(found, dtype=object)
    odd = _untidy(named)
    if len(odd) == 0:
        return codes.astype(np.int64), named
    named[odd] = [label(value) for value in named[odd]]
    gone = [i for i in odd if str(named[i]).casefold() in MISSING]
    if gone or len(set(named)) < len(named):
        named[gone] = None
        recoded, kept = pd.factorize(named)
        codes, named = np.append(recoded, -1)[codes], np.asarray(kept, dtype=object)
    return codes.astype(np.int64), named


def _untidy(values: np.ndarray) -> np.ndarray:
    """The places of values that may not be their own label, or that mean missing: one search through all of them."""
    if len(values) == 0 or not pd.api.types.is_string_dtype(values):
        return np.arange(len(values))
    lines = "\n" + "\n".join(values) + "\n"
    hits = [match.end() for match in _BEGINNING.finditer(lines)]
    hits += [match.start() for ending in _ENDINGS for match in ending.finditer(lines)]
    if not hits:
        return np.empty(0, np.int64)
    starts = np.cumsum([1] + [len(text) + 1 for text in values[:-1]])
    return np.unique(np.maximum(np.searchsorted(starts, hits, side="right") - 1, 0))


def thinned(texts: np.ndarray, size: int) -> np.ndarray:
    """Some of the texts, evenly spread."""
    return texts[:: max(1, len(texts) // size)]


def label(value: Any) -> str:
    """The name of a value, the same whether it came as text, as a number or as a truth value.

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
