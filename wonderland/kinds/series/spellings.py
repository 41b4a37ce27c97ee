"""Spellings of stamps that name a month, a quarter, a week or a day of a local calendar: rewritten as days."""

import re
from collections.abc import Callable
from typing import Any

import pandas as pd

NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR, _MONTH = r"(?P<year>\d{4})", r"(?P<month>0?[1-9]|1[0-2])"
_CENTURIES = r"(?P<year>(?:1[789]|20|21)\d\d)"  # of years that are written together with a month


def _from_month(parts: Any) -> Any:
    return parts["year"] + "-" + parts["month"].str.zfill(2) + "-01"


def _from_name(parts: Any) -> Any:
    numbers = parts["name"].str[:3].map({name: f"{number:02d}" for number, name in enumerate(NAMES, 1)})
    return parts["year"] + "-" + numbers + "-01"


def _from_quarter(parts: Any) -> Any:
    return parts["year"] + "-" + parts["quarter"].map({"1": "01", "2": "04", "3": "07", "4": "10"}) + "-01"


def _from_week(parts: Any) -> Any:
    """The Mondays of ISO weeks; a week 53 that a year has not is the first of the next."""
    weeks: Any = pd.to_numeric(parts["week"].fillna("1"))
    fourth: Any = pd.to_datetime(
        parts["year"].fillna("1970") + "-01-04"
    )  # the fourth of January lies in the first week
    monday = fourth - pd.to_timedelta(fourth.dt.day_of_week, unit="D") + pd.to_timedelta(7 * (weeks - 1), unit="D")
    return monday.where(parts["year"].notna())


def _from_day(parts: Any) -> Any:
    return parts["year"] + "-" + parts["month"].str.zfill(2) + "-" + parts["day"].str.zfill(2)


# Midnights with an offset are days of a calendar: where clocks change they are no 24 hours apart in UTC, and months begin in the one before.
SPELLINGS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    (rf"{_YEAR}\s*[-/ ]?\s*q(?P<quarter>[1-4])", _from_quarter),
    (rf"q(?P<quarter>[1-4])\s*[-/ ]?\s*{_YEAR}", _from_quarter),
    (rf"{_YEAR}\s*(?:[-/.]|[-/ ]?m)\s*{_MONTH}", _from_month),
    (rf"{_MONTH}\s*[-/.]\s*{_YEAR}", _from_month),
    (rf"{_YEAR}\s*[-/. ]?\s*{_NAME}", _from_name),
    (rf"{_NAME}\s*[-/, ]?\s*{_YEAR}", _from_name),
    (rf"{_YEAR}\s*[-/ ]?\s*w(?P<week>0?[1-9]|[1-4]\d|5[0-3])", _from_week),
    (rf"{_CENTURIES}(?P<month>0[1-9]|1[0-2])(?:\.0)?", _from_month),
    (rf"{_CENTURIES}(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])(?:\.0)?", _from_day),
    (rf"{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)[t ]00:00(?::00(?:\.0+)?)?\s*[+-]\d\d:?\d\d", _from_day),
)


def as_days(cells: Any) -> Any:
    """A column whose cells are all spelled in one of these ways, as days; any other as it is.

    >>> as_days(pd.Series(["2005M11", None, "2006M01"])).tolist()
    ['2005-11-01', nan, '2006-01-01']
    """
    if isinstance(cells.dtype, pd.PeriodDtype):
        return cells.dt.to_timestamp()
    if isinstance(cells.dtype, pd.DatetimeTZDtype):
        local = cells.dt.tz_localize(None)
        return local if bool((local.dropna() == local.dropna().dt.normalize()).all()) else cells
    texts = cells.dropna().astype(str).str.strip().str.lower()
    for pattern, rewrite in SPELLINGS:
        if len(texts) and re.fullmatch(pattern, texts.iloc[0]) and texts.str.fullmatch(pattern).all():
            return rewrite(texts.str.extract(f"^{pattern}$")).reindex(cells.index)
    return cells
