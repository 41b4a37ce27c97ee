"""Stamps of a series on a regular grid: frequency, season and calendar, found from the stamps themselves."""

import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.data.columns import Column, read_as, read_column
from wonderland.kinds.series.spellings import as_days

DAY = 86_400.0
EPOCH = pd.Timestamp("1970-01-01")
_OFFSET = re.compile(r"\d{1,2}:\d\d.*(?:Z|[+-]\d\d:?\d\d)\s*$")
NAMES = {60.0: "every minute", 900.0: "every 15 minutes", 1800.0: "every 30 minutes", 3600.0: "hourly", DAY: "daily", 7 * DAY: "weekly"}  # fmt: skip
MONTHS = {1: "monthly", 3: "quarterly", 6: "half-yearly", 12: "yearly"}
# Seasons of a calendar by the seconds of a step: those that may be in it, the most usual first.
SEASONS = {60.0: (1440,), 300.0: (288,), 600.0: (144, 1008), 900.0: (96, 672), 1800.0: (48, 336), 3600.0: (24, 168), DAY: (7, 365), 7 * DAY: (52,)}  # fmt: skip
LEAST_CORRELATION = 0.3
STEPS = (
    1.0,
    5.0,
    10.0,
    15.0,
    30.0,
    60.0,
    300.0,
    600.0,
    900.0,
    1800.0,
    3600.0,
    7200.0,
    10_800.0,
    21_600.0,
    43_200.0,
    DAY,
    7 * DAY,
)


@dataclass(frozen=True)
class Frequency:
    """A regular grid of time, with whole numbers as places.

    `unit` is "second" (a fixed step of seconds), "month" (months of the calendar), "business day", or "number" (stamps that are no
    dates). `step` is the length of a step in that unit, `origin` the stamp of place 0, `end` whether months are named by their last
    day, `aware` whether stamps carried an offset from UTC.
    """

    unit: str
    step: float
    origin: float
    end: bool = False
    aware: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)

    @staticmethod
    def from_json(value: Any) -> "Frequency":
        """Back from `to_json`; anything else is refused."""
        if not isinstance(value, dict) or value.get("unit") not in ("second", "month", "business day", "number"):
            raise TypeError("no frequency")
        step, origin = value["step"], value["origin"]
        numbers = all(isinstance(number, int | float) and not isinstance(number, bool) for number in (step, origin))
        if not numbers or not 0 < step < 1e12 or not abs(origin) < 1e15:
            raise TypeError("no frequency")
        return Frequency(value["unit"], float(step), float(origin), value["end"] is True, value["aware"] is True)

    @property
    def dated(self) -> bool:
        """Whether stamps are dates."""
        return self.unit != "number"

    @property
    def name(self) -> str:
        """The frequency in words."""
        if self.unit == "month":
            return MONTHS.get(int(self.step), f"every {self.step:g} months")
        if self.unit == "business day":
            return "every business day"
        if self.unit == "number":
            return f"in steps of {self.step:g}"
        for length, noun in ((DAY, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds")):
            if self.step >= length and self.step not in NAMES:
                return f"every {self.step / length:g} {noun}"
        return NAMES.get(self.step, f"every {self.step:g} seconds")

    def places(self, stamps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The place of each stamp on the grid, and how far from it the stamp is, as a share of a step."""
        if self.unit == "month":
            position = (months_of(stamps) - self.origin) / self.step
            return np.floor(position + 1e-9).astype(np.int64), position - np.floor(position + 1e-9)
        if self.unit == "business day":
            days = np.floor(stamps / DAY)
            position = weekdays_since(days) - self.origin
            return position.astype(np.int64), np.zeros(len(position))
        position = (stamps - self.origin) / self.step
        place = np.rint(position)
        return place.astype(np.int64), np.abs(position - place)

    def stamps(self, places: np.ndarray) -> np.ndarray:
        """The stamps of places: seconds since 1970, or numbers."""
        places = np.asarray(places, np.int64)
        if self.unit == "month":
            month = (self.origin + places * self.step).astype(np.int64) + int(self.end)
            first = month.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) - int(self.end)
            return first * DAY
        if self.unit == "business day":
            position = places + self.origin
            week, day = np.floor_divide(position, 5), np.mod(position, 5)
            return (week * 7 + day - 3) * DAY  # 1970-01-01 was a Thursday
        return self.origin + places * self.step

    def texts(self, places: np.ndarray) -> list[Any]:
        """The stamps of places as they are written: dates as text, numbers as numbers."""
        stamps = self.stamps(places)
        if not self.dated:
            whole = self.step == int(self.step) and self.origin == int(self.origin)
            return [int(value) if whole else float(value) for value in stamps]
        moments = pd.to_datetime(np.rint(stamps * 1e6).astype(np.int64), unit="us")
        daily = self.unit != "second" or (self.step % DAY == 0 and self.origin % DAY == 0)
        form = "%Y-%m-%d" if daily else "%Y-%m-%d %H:%M:%S"
        return [text + ("+00:00" if self.aware and not daily else "") for text in moments.strftime(form)]

    def calendar(self, places: np.ndarray) -> np.ndarray:
        """Position in the day, the week and the year as sine and cosine, those that change along the grid: (n, k) float32."""
        if not self.dated:
            return np.zeros((len(places), 0), np.float32)
        stamps = self.stamps(places)
        cycles = []
        if self.unit == "second" and self.step < DAY:
            cycles.append(stamps / DAY)
        if self.unit == "business day" or (self.unit == "second" and self.step < 7 * DAY):
            cycles.append((stamps / DAY + 3) / 7)
        if not (self.unit == "month" and self.step >= 12):
            cycles.append(stamps / DAY / 365.2425)
        waves = [wave(2 * np.pi * cycle) for cycle in cycles for wave in (np.sin, np.cos)]
        return np.stack(waves, 1).astype(np.float32) if waves else np.zeros((len(places), 0), np.float32)

    def seasons(self) -> tuple[int, ...]:
        """Lengths of seasons that the calendar suggests, the most usual first."""
        if self.unit == "month":
            return (int(12 // self.step),) if self.step < 12 and 12 % self.step == 0 else ()
        if self.unit == "business day":
            return (5,)
        return SEASONS.get(self.step, ()) if self.unit == "second" else ()


def months_of(stamps: np.ndarray) -> np.ndarray:
    """Months since 1970 of seconds since 1970, with the part of the month as a fraction."""
    days = np.floor(stamps / DAY).astype(np.int64).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    return months.astype(np.int64) + (days - months.astype("datetime64[D]")).astype(np.int64) / 32


def weekdays_since(days: np.ndarray) -> np.ndarray:
    """Business days since Monday, 1969-12-29; a weekend counts as the Friday before it."""
    shifted = days + 3
    return np.floor_divide(shifted, 7) * 5 + np.minimum(np.mod(shifted, 7), 4)


def read_stamps(name: str, cells: Any) -> tuple[np.ndarray, bool, bool]:
    """Stamps of a column: (n,) seconds since 1970 or numbers, NaN where empty; whether they are dates; whether they have an offset."""
    cells = as_days(cells)
    texts = cells.dropna().astype(str)
    aware = isinstance(cells.dtype, pd.DatetimeTZDtype) or bool(
        len(texts) and texts.iloc[:100].str.contains(_OFFSET).mean() > 0.9
    )
    column = read_column(name, cells)
    numbers: Any = pd.to_numeric(texts, errors="coerce")
    if column.kind == "constant" and numbers.isna().all():
        # One date alone looks like any constant.
        dated = read_as(Column(name, "date", np.empty(0), format="ISO8601"), cells)
        column = column if np.isnan(dated.values[cells.notna().to_numpy()]).any() else dated
    if column.kind == "date":
        return column.values * DAY, True, aware
    if column.levels is None and column.kind != "boolean":
        return column.values, False, False
    example = str(texts.iloc[0])[:40] if len(texts) else ""
    raise WonderlandError(
        f"Column {name!r} holds {example!r}, which is neither a date nor a number: name the column of times with time (--time)."
    )


def detect(stamps: list[np.ndarray], dated: bool, aware: bool) -> Frequency:
    """The frequency of several series, from the stamps of each (sorted, without duplicates)."""
    steps = np.concatenate([np.diff(part) for part in stamps])
    every = np.concatenate(stamps)
    first = float(every.min())
    if not len(steps):
        return Frequency("second" if dated else "number", DAY if dated else 1.0, first, aware=aware)
    values, counts = np.unique(np.round(steps, 6), return_counts=True)
    usual = float(values[counts.argmax()]) if counts.max() >= 0.5 * len(steps) else float(np.median(steps))
    if not dated:
        return Frequency("number", usual, first)
    middle = float(np.median(steps)) / DAY
    for months in (1, 3, 6, 12):
        if 28 <= middle / months <= 31.1 and 27.5 <= usual / DAY / months <= 31.1:
            days = np.unique(np.floor(every / DAY).astype(np.int64))
            dates = days.astype("datetime64[D]")
            month = dates.astype("datetime64[M]")
            day = (dates - month.astype("datetime64[D]")).astype(np.int64)
            last = ((dates + 1).astype("datetime64[M]") > month).mean() > 0.9
            if last or np.ptp(day) <= 3:
                return Frequency(
                    "month",
                    float(months),
                    float(month.astype(np.int64).min()),
                    end=bool(last and day.max() > 0),
                    aware=aware,
                )
    weekday = np.mod(np.floor(every / DAY) + 3, 7)
    if usual == DAY and len(every) >= 20 and (weekday < 5).mean() > 0.99 and (every % DAY == every[0] % DAY).all():
        return Frequency("business day", 1.0, float(weekdays_since(np.floor(np.array([first]) / DAY))[0]), aware=aware)
    if counts.max() < 0.5 * len(steps):
        # Nothing is regular: of the usual steps, the one nearest to the mean distance of two stamps.
        mean = float(np.mean(steps))
        usual = min(STEPS, key=lambda step: abs(np.log(step / mean))) if mean >= 1 else usual
    usual = float(max(1.0, round(usual))) if usual >= 1 else usual
    # The grid goes through most stamps, which the first one need not be on; where it meets few of them, through whole hours and days.
    phases, counts = np.unique(np.round(np.mod(every - first, usual), 3), return_counts=True)
    if usual in STEPS and counts.max() < 0.1 * len(every):
        unit = min(usual, DAY)
        return Frequency("second", usual, float(np.floor(first / unit) * unit), aware=aware)
    return Frequency("second", usual, first + float(phases[counts.argmax()]), aware=aware)


def detect_season(values: list[np.ndarray], frequency: Frequency) -> tuple[int, float]:
    """The season of most of the series by the autocorrelation of their differences, and that correlation; 1 where there is none.

    Lengths that the calendar suggests come first; others are tried where it suggests none.
    """
    longest = sorted(values, key=len, reverse=True)[:20]
    usual = [length for length in frequency.seasons() if any(len(part) >= 3 * length for part in longest)]
    tried = usual or (
        [] if frequency.seasons() else list(range(2, min(60, max(len(part) for part in longest) // 4 + 1)))
    )
    correlations = {
        length: correlation for length in tried if (correlation := _correlation(longest, length)) is not None
    }
    if not correlations:
        return 1, 0.0
    if usual:
        best = usual[0]
        for other in usual[1:]:
            if correlations.get(other, -1.0) > correlations.get(best, -1.0) + 0.1:
                best = other
        return (best, correlations[best]) if correlations.get(best, -1.0) > 0.1 else (1, 0.0)
    best = max(correlations, key=lambda length: correlations[length])
    return (best, correlations[best]) if correlations[best] > LEAST_CORRELATION else (1, 0.0)


def _correlation(values: list[np.ndarray], lag: int) -> float | None:
    """The mean autocorrelation at a lag of differences of series that are long enough."""
    correlations = []
    for part in values:
        change = np.diff(part[-20 * lag - 1000 :])
        if len(change) < 2 * lag or not np.ptp(change):
            continue
        change = change - change.mean()
        correlations.append(float((change[lag:] * change[:-lag]).sum() / max((change**2).sum(), 1e-300)))
    return float(np.mean(correlations)) if correlations else None
