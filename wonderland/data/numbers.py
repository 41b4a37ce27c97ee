"""Numbers written as text: currency and per cent signs, and both ways of writing thousands and decimals.

A column may have a million different texts, so texts are changed and matched all at once, in one string with a mark
between them.
"""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

_SIGNS = "$€£¥%"
_CURRENCIES = ("USD", "EUR", "GBP")
_MARK = "\0"
_ENGLISH = re.compile(r"(?<=\0)[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?(?=\0)")
_CONTINENTAL = re.compile(r"(?<=\0)[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d*)?(?=\0)")

_NEGATIVE = re.compile(r"(?<=\0)\(([\d.,]+)\)(?=\0)")


def numbers(texts: np.ndarray) -> np.ndarray:
    """Texts as numbers, NaN where they are not: blanks, currency and per cent signs, and 1,234.5 or 1.234,5 are read.

    >>> numbers(np.array(["$1,234.50", "12%", "x"], dtype=object)).tolist()
    [1234.5, 12.0, nan]
    >>> numbers(np.array(["(1,234.50)", "7"], dtype=object)).tolist()
    [-1234.5, 7.0]
    >>> numbers(np.array(["1.234,5", "0,25"], dtype=object)).tolist()
    [1234.5, 0.25]
    """
    read = _floats(texts)
    rest = np.flatnonzero(np.isnan(read))
    if len(rest) == 0:
        return read
    written = _MARK.join(texts[rest])
    if written.count(_MARK) >= len(rest):
        written = _MARK.join(text.replace(_MARK, "x") for text in texts[rest])
    bare = _bare(written)
    plain = np.full(len(rest), np.nan) if bare == written else _floats(bare.split(_MARK))
    found = _styled(bare, _ENGLISH, bare.replace(",", ""), plain)
    if np.isnan(found).any():
        other = _styled(bare, _CONTINENTAL, bare.replace(".", "").replace(",", "."), plain)
        found = max(found, other, key=lambda style: int((~np.isnan(style)).sum()))
    read[rest] = found
    return read


def _bare(written: str) -> str:
    """The texts without blanks and currencies, and with a minus for the brackets of bookkeepers."""
    for currency in _CURRENCIES:
        written = written.replace(currency, "")
    for letter in set(written):
        if letter in _SIGNS or letter.isspace():
            written = written.replace(letter, "")
    return _NEGATIVE.sub(r"-\1", f"{_MARK}{written}{_MARK}")[1:-1] if "(" in written else written


def _styled(bare: str, style: re.Pattern[str], changed: str, plain: np.ndarray) -> np.ndarray:
    """The numbers, with texts of one style read as `changed`, and all others as they stand."""
    left = style.sub("", f"{_MARK}{bare}{_MARK}")[1:-1].split(_MARK)
    fits = np.array([not text for text in left])
    read = plain.copy()
    read[fits] = pd.to_numeric(np.array(changed.split(_MARK), dtype=object)[fits], errors="coerce")
    return read


def _floats(texts: Sequence[str] | np.ndarray) -> np.ndarray:
    """Plain numbers; what shows a sign or a comma is not tried, for a failure costs more than a success."""
    likely = np.array([text[:1] not in _SIGNS and "," not in text and text[-1:] != "%" for text in texts], dtype=bool)
    read = np.full(len(texts), np.nan)
    read[likely] = pd.to_numeric(np.asarray(texts, dtype=object)[likely], errors="coerce")
    return read
