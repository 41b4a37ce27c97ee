"""Dates written as text: finding their format, and reading them as days since 1970."""

import re
from datetime import datetime

import numpy as np
import pandas as pd

from wonderland.data.cells import thinned

DAY = 86_400_000_000  # microseconds
_DATED = re.compile(r"\d[-/.:T ]|[A-Za-z]{3}")
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y", "%Y.%m.%d")
_WORDY = (
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d, %Y",
    "%b %d %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%B %d %Y",
    "%b-%Y",
    "%b %Y",
)
_SHORT = ("%m/%d/%y", "%d/%m/%y", "%d.%m.%y")
_CLOCKS = ("", " %H:%M:%S", " %H:%M", "T%H:%M:%S", " %H:%M:%S.%f", " %I:%M:%S %p", " %I:%M %p")
DATE_FORMATS = ("ISO8601", *(day + clock for day in (*_DAYS, *_WORDY, *_SHORT) for clock in _CLOCKS))
# Names for cells of several formats: each is read by the first that fits it, with the month or the day first in doubt.
MIXED = ("several formats, month first", "several formats, day first")
_MIXABLE = re.compile(
    r"\d{1,4}[-/. ](?:\d{1,2}|[A-Za-z]{3,9})[-/. ]|[A-Za-z]{3,9} \d{1,2},? |[A-Za-z]{3,9}[- ]\d{4}|\d{8}"
)
_ISO = re.compile(r"\d{4}-\d\d-\d\d")


def dates(texts: np.ndarray, form: str) -> np.ndarray:
    """Texts as days since 1970 (fractions are the time of day), NaN where they do not follow the format."""
    if form in MIXED:
        first, last = ("%m", "%d") if form == MIXED[0] else ("%d", "%m")
        forms = sorted(DATE_FORMATS, key=lambda known: known.startswith(last) - known.startswith(first))
        return _by_any(texts, ["ISO8601", *forms])
    moments = pd.to_datetime(pd.Series(texts, dtype=object), format=form, errors="coerce", utc=True)
    return days_since_1970(moments)


def dates_or_iso(texts: np.ndarray, form: str) -> np.ndarray:
    """Texts as days by the format, or else as dates such as 2024-01-31, which leave no doubt.

    >>> dates_or_iso(np.array(["02.01.1970", "1970-01-03", "x"], dtype=object), "%d.%m.%Y").tolist()
    [1.0, 2.0, nan]
    """
    read = dates(texts, form)
    rest = [i for i in np.flatnonzero(np.isnan(read)) if _ISO.match(str(texts[i]))]
    if rest:
        read[rest] = dates(texts[rest], "ISO8601")
    return read


def _by_any(texts: np.ndarray, forms: list[str]) -> np.ndarray:
    """Each text by the first format that fits it."""
    read = np.full(len(texts), np.nan)
    for form in forms:
        rest = np.flatnonzero(np.isnan(read))
        if len(rest) == 0:
            break
        read[rest] = dates(texts[rest], form)
    return read


def find_mixed_dates(texts: np.ndarray) -> tuple[str, np.ndarray]:
    """Which name of `MIXED` reads at least nine in ten texts, or ""; and the dates."""
    sample = thinned(texts, 300)
    if sum(len(text) < 36 and _MIXABLE.search(text) is not None for text in sample) < 0.9 * len(sample):
        return "", np.empty(0)
    days = [
        _share(_by_any(sample, [form for form in DATE_FORMATS if not (form.startswith(last) and _swapped(form))]))
        for last in ("%d", "%m")
    ]
    form = MIXED[0] if days[0] >= days[1] else MIXED[1]
    if _share(dates(sample, form)) < 0.9:
        return "", np.empty(0)
    read = dates(texts, form)
    return (form, read) if _share(read) >= 0.9 else ("", np.empty(0))


def _swapped(form: str) -> str:
    """The format with day and month in each other's place, when it is a known one; else ""."""
    swapped = form.replace("%m", "%_").replace("%d", "%m").replace("%_", "%d")
    return swapped if swapped in DATE_FORMATS and swapped != form else ""


def find_dates(texts: np.ndarray) -> tuple[str, bool, np.ndarray]:
    """The date format that reads (nearly) all texts, or ""; whether day and month could as well be swapped; and the dates.

    >>> find_dates(np.array(["1970-01-01", "1970-01-03"], dtype=object))
    ('ISO8601', False, array([0., 2.]))
    """
    sample = thinned(texts, 300)
    dated = [5 < len(text) < 36 and any(map(str.isdigit, text)) and _DATED.search(text) for text in sample]
    if sum(map(bool, dated)) < 0.9 * len(sample):
        return "", False, np.empty(0)
    read: dict[str, np.ndarray] = {}
    for form in DATE_FORMATS:
        if any(_fits(text, form) for text in sample[:5]) and _share(dates(sample, form)) >= 0.9:
            read[form] = dates(texts, form)
            if _share(read[form]) == 1 and form[:2] not in ("%m", "%d"):
                break
    best = max(read, key=lambda form: _share(read[form]), default="")
    if not best or _share(read[best]) < 0.95:
        return "", False, np.empty(0)
    swapped = _swapped(best)
    unsure = best[:2] in ("%m", "%d") and swapped in read and _share(read[swapped]) == _share(read[best])
    return best, unsure, read[best]


def _fits(text: str, form: str) -> bool:
    try:
        datetime.strptime(text, form) if form != "ISO8601" else datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _share(read: np.ndarray) -> float:
    return float((~np.isnan(read)).mean())


def days_since_1970(moments: pd.Series) -> np.ndarray:
    """Moments as days, with fractions for the time of day; NaN where missing."""
    if getattr(moments.dtype, "tz", None) is not None:
        moments = moments.dt.tz_convert("UTC").dt.tz_localize(None)
    stamps = moments.to_numpy().astype("datetime64[us]")
    days = stamps.astype(np.int64) / DAY
    days[np.isnat(stamps)] = np.nan
    return days
