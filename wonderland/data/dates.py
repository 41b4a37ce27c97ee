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


def dates(texts: np.ndarray, form: str) -> np.ndarray:
    """Texts as days since 1970 (fractions are the time of day), NaN where they do not follow the format."""
    moments = pd.to_datetime(pd.Series(texts, dtype=object), format=form, errors="coerce", utc=True)
    return days_since_1970(moments)


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
    swapped = best.replace("%m", "%_").replace("%d", "%m").replace("%_", "%d")
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
