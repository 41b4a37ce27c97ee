"""Dates written as text: detect their format, and convert them to days since 1970."""

import re
from datetime import datetime

import numpy as np
import pandas as pd

from wonderland.data.cells import evenly_spaced

DAY = 86_400_000_000  # microseconds
_LIKE_DATE = re.compile(r"\d[-/.:T ]|[A-Za-z]{3}")
_DAY_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y", "%Y.%m.%d")
_MONTH_NAMES = (
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b-%d-%Y",
    "%b %d, %Y",
    "%b %d %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%B %d %Y",
    "%b-%Y",
    "%b %Y",
)
_SHORT_YEARS = ("%m/%d/%y", "%d/%m/%y", "%d.%m.%y")
_TIME_FORMATS = ("", " %H:%M:%S", " %H:%M", "T%H:%M:%S", " %H:%M:%S.%f", " %I:%M:%S %p", " %I:%M %p")
DATE_FORMATS = (
    "ISO8601",
    *(day + clock for day in (*_DAY_FORMATS, *_MONTH_NAMES, *_SHORT_YEARS) for clock in _TIME_FORMATS),
)
# Names for columns with several formats: each cell is read by the first format that fits it; where day and month could be
# swapped, the month or the day comes first.
MIXED = ("several formats, month first", "several formats, day first")
_LIKE_ANY_DATE = re.compile(
    r"\d{1,4}[-/. ](?:\d{1,2}|[A-Za-z]{3,9})[-/. ]|[A-Za-z]{3,9} \d{1,2},? |[A-Za-z]{3,9}[- ]\d{4}|\d{8}"
)
_ISO = re.compile(r"\d{4}-\d\d-\d\d")


def parse_dates(texts: np.ndarray, format: str) -> np.ndarray:
    """Texts as days since 1970 (fractions are the time of day), NaN where they do not follow the format."""
    if format in MIXED:
        first, last = ("%m", "%d") if format == MIXED[0] else ("%d", "%m")
        formats = sorted(DATE_FORMATS, key=lambda known: known.startswith(last) - known.startswith(first))
        return _by_first_fitting(texts, ["ISO8601", *formats])
    moments = pd.to_datetime(pd.Series(texts, dtype=object), format=format, errors="coerce", utc=True)
    return days_since_1970(moments)


def parse_dates_or_iso(texts: np.ndarray, format: str) -> np.ndarray:
    """Texts as days by the format, or else as ISO dates such as 2024-01-31, which are never ambiguous.

    >>> parse_dates_or_iso(np.array(["02.01.1970", "1970-01-03", "x"], dtype=object), "%d.%m.%Y").tolist()
    [1.0, 2.0, nan]
    """
    read = parse_dates(texts, format)
    rest = [i for i in np.flatnonzero(np.isnan(read)) if _ISO.match(str(texts[i]))]
    if rest:
        read[rest] = parse_dates(texts[rest], "ISO8601")
    return read


def _by_first_fitting(texts: np.ndarray, formats: list[str]) -> np.ndarray:
    """Texts as days, each by the first format that fits it."""
    read = np.full(len(texts), np.nan)
    for format in formats:
        rest = np.flatnonzero(np.isnan(read))
        if len(rest) == 0:
            break
        read[rest] = parse_dates(texts[rest], format)
    return read


def detect_mixed_formats(texts: np.ndarray) -> tuple[str, np.ndarray]:
    """Which name of `MIXED` reads at least nine in ten texts, or ""; and the texts as days."""
    sample = evenly_spaced(texts, 300)
    if sum(len(text) < 36 and _LIKE_ANY_DATE.search(text) is not None for text in sample) < 0.9 * len(sample):
        return "", np.empty(0)
    days = [
        _share_read(
            _by_first_fitting(
                sample, [format for format in DATE_FORMATS if not (format.startswith(last) and _swapped(format))]
            )
        )
        for last in ("%d", "%m")
    ]
    format = MIXED[0] if days[0] >= days[1] else MIXED[1]
    if _share_read(parse_dates(sample, format)) < 0.9:
        return "", np.empty(0)
    read = parse_dates(texts, format)
    return (format, read) if _share_read(read) >= 0.9 else ("", np.empty(0))


def _swapped(format: str) -> str:
    """The format with day and month in each other's place, when it is a known one; else ""."""
    swapped = format.replace("%m", "%_").replace("%d", "%m").replace("%_", "%d")
    return swapped if swapped in DATE_FORMATS and swapped != format else ""


def detect_date_format(texts: np.ndarray) -> tuple[str, bool, np.ndarray]:
    """The date format that reads (nearly) all texts, or ""; whether day and month could be swapped as well; and the texts as
    days.

    >>> detect_date_format(np.array(["1970-01-01", "1970-01-03"], dtype=object))
    ('ISO8601', False, array([0., 2.]))
    """
    sample = evenly_spaced(texts, 300)
    date_like = [5 < len(text) < 36 and any(map(str.isdigit, text)) and _LIKE_DATE.search(text) for text in sample]
    if sum(map(bool, date_like)) < 0.9 * len(sample):
        return "", False, np.empty(0)
    days_by_format: dict[str, np.ndarray] = {}
    for format in DATE_FORMATS:
        if any(_fits(text, format) for text in sample[:5]) and _share_read(parse_dates(sample, format)) >= 0.9:
            days_by_format[format] = parse_dates(texts, format)
            if _share_read(days_by_format[format]) == 1 and format[:2] not in ("%m", "%d"):
                break
    best = max(days_by_format, key=lambda format: _share_read(days_by_format[format]), default="")
    if not best or _share_read(days_by_format[best]) < 0.95:
        return "", False, np.empty(0)
    swapped = _swapped(best)
    ambiguous = (
        best[:2] in ("%m", "%d")
        and swapped in days_by_format
        and _share_read(days_by_format[swapped]) == _share_read(days_by_format[best])
    )
    return best, ambiguous, days_by_format[best]


def _fits(text: str, format: str) -> bool:
    try:
        datetime.strptime(text, format) if format != "ISO8601" else datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _share_read(read: np.ndarray) -> float:
    return float((~np.isnan(read)).mean())


def days_since_1970(moments: pd.Series) -> np.ndarray:
    """Moments as days, with fractions for the time of day; NaN where missing."""
    if getattr(moments.dtype, "tz", None) is not None:
        moments = moments.dt.tz_convert("UTC").dt.tz_localize(None)
    stamps = moments.to_numpy().astype("datetime64[us]")
    days = stamps.astype(np.int64) / DAY
    days[np.isnat(stamps)] = np.nan
    return days
