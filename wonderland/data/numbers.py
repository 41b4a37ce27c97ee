"""Numbers written as text: currency and per cent signs, and both ways of writing thousands and decimals.

A column may have a million different texts, so they are joined with a separator, and one regular expression changes them all.
"""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

_SIGNS = "$€£¥%"
_CURRENCIES = ("USD", "EUR", "GBP")
_SEPARATOR = "\0"
_ENGLISH = re.compile(r"(?<=\0)[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?(?=\0)")
_CONTINENTAL = re.compile(r"(?<=\0)[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d*)?(?=\0)")

_NEGATIVE = re.compile(r"(?<=\0)\(([\d.,]+)\)(?=\0)")


def parse_numbers(texts: np.ndarray) -> np.ndarray:
    """Texts as numbers, NaN where they are not: blanks, currency and per cent signs, and 1,234.5 or 1.234,5 are read.

    >>> parse_numbers(np.array(["$1,234.50", "12%", "x"], dtype=object)).tolist()
    [1234.5, 12.0, nan]
    >>> parse_numbers(np.array(["(1,234.50)", "7"], dtype=object)).tolist()
    [-1234.5, 7.0]
    >>> parse_numbers(np.array(["1.234,5", "0,25"], dtype=object)).tolist()
    [1234.5, 0.25]
    """
    read = _floats(texts)
    unread = np.flatnonzero(np.isnan(read))
    if len(unread) == 0:
        return read
    joined = _SEPARATOR.join(texts[unread])
    if joined.count(_SEPARATOR) >= len(unread):
        joined = _SEPARATOR.join(text.replace(_SEPARATOR, "x") for text in texts[unread])
    bare = _without_signs(joined)
    plain = np.full(len(unread), np.nan) if bare == joined else _floats(bare.split(_SEPARATOR))
    values = _read_style(bare, _ENGLISH, bare.replace(",", ""), plain)
    if np.isnan(values).any():
        continental = _read_style(bare, _CONTINENTAL, bare.replace(".", "").replace(",", "."), plain)
        values = max(values, continental, key=lambda style: int((~np.isnan(style)).sum()))
    read[unread] = values
    return read


def _without_signs(written: str) -> str:
    """The texts without blanks and currencies, and with a minus instead of brackets, as in accounts."""
    for currency in _CURRENCIES:
        written = written.replace(currency, "")
    for letter in set(written):
        if letter in _SIGNS or letter.isspace():
            written = written.replace(letter, "")
    return _NEGATIVE.sub(r"-\1", f"{_SEPARATOR}{written}{_SEPARATOR}")[1:-1] if "(" in written else written


def _read_style(bare: str, style: re.Pattern[str], changed: str, plain: np.ndarray) -> np.ndarray:
    """The numbers, with texts of one style read as `changed`, and all others as they stand."""
    left = style.sub("", f"{_SEPARATOR}{bare}{_SEPARATOR}")[1:-1].split(_SEPARATOR)
    fits = np.array([not text for text in left])
    read = plain.copy()
    read[fits] = pd.to_numeric(np.array(changed.split(_SEPARATOR), dtype=object)[fits], errors="coerce")
    return read


def _floats(texts: Sequence[str] | np.ndarray) -> np.ndarray:
    """Plain numbers; texts with a sign or a comma are skipped, because a failed conversion is slow."""
    likely = np.array([text[:1] not in _SIGNS and "," not in text and text[-1:] != "%" for text in texts], dtype=bool)
    read = np.full(len(texts), np.nan)
    read[likely] = pd.to_numeric(np.asarray(texts, dtype=object)[likely], errors="coerce")
    return read
