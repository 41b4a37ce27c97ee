"""Panel: one or many series on one grid of time, read from a table in long form; faults are repaired and told."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.columns import read_column
from wonderland.data.dataset import Dataset, Finding, counted
from wonderland.kinds.series.stamps import DAY, Frequency, detect, detect_season, read_stamps

TIMES = (
    "date",
    "datetime",
    "timestamp",
    "time",
    "ds",
    "day",
    "month",
    "week",
    "year",
    "period",
    "quarter",
    "hour",
    "when",
)
SPAN = 50  # a grid may have so many steps for each row, and 10,000 more
LEVELS = 8  # categories of a covariate that get a column each


@dataclass
class Track:
    """One series: its name, its first place on the grid, targets (n, c) with NaN where missing, covariates (m, k), m >= n."""

    name: str
    start: int
    values: np.ndarray
    covariates: np.ndarray

    @property
    def stop(self) -> int:
        """The first place after the last target."""
        return self.start + len(self.values)


@dataclass(frozen=True)
class Layout:
    """How a table is read as series: which column is what, the grid, the season, and the levels of covariates."""

    time: str
    targets: tuple[str, ...]
    series: str | None
    known: tuple[str, ...]
    past: tuple[str, ...]
    frequency: Frequency
    season: int
    levels: Mapping[str, Sequence[str]]

    @property
    def covariates(self) -> list[str]:
        """The names of columns of covariates, categories spread out; those of the past last."""
        return [made for name in (*self.known, *self.past) for made in self._columns(name)]

    @property
    def known_count(self) -> int:
        """How many columns of covariates are known in the future; they come first."""
        return sum(len(self._columns(name)) for name in self.known)

    def _columns(self, name: str) -> list[str]:
        return [f"{name} = {level}" for level in self.levels[name]] if name in self.levels else [name]


class Panel(Dataset):
    """Series on one grid; new data of a run are joined to what it has stored, which `begins` tells apart."""

    kind, noun, task = "series", "steps", "forecasting"
    classes, y = None, None

    def __init__(
        self, tracks: list[Track], layout: Layout, *, name: str, origin: dict[str, Any], findings: list[Finding]
    ):
        self.tracks, self.layout, self.name, self.origin, self.findings = tracks, layout, name, origin, findings
        self.target = ", ".join(layout.targets) if len(layout.targets) < 6 else f"{len(layout.targets)} columns"
        self.begins: list[int] | None = None  # of new data, the first place of each series; earlier ones are context
        self.ahead = False  # whether the steps after the last one are to be forecast
        digest = hashlib.sha256(repr((layout.targets, layout.covariates, layout.frequency, layout.season)).encode())
        for track in tracks:
            digest.update(f"{track.name}|{track.start}|{track.values.shape}".encode())
            digest.update(
                np.ascontiguousarray(track.values).tobytes() + np.ascontiguousarray(track.covariates).tobytes()
            )
        self.fingerprint = digest.hexdigest()

    @staticmethod
    def read(
        frame: Any,
        asked: Mapping[str, Any],
        *,
        name: str,
        origin: dict[str, Any],
        findings: Sequence[Finding] = (),
        layout: Layout | None = None,
        need_target: bool = True,
    ) -> "Panel":
        """Read a table; with the `layout` of a run, as its training data were read."""
        notes = Notes(name, list(findings))
        names = [str(column) for column in frame.columns]
        frame = frame.set_axis(names, axis=1)
        for role in ("time", "series", "known", "past"):
            for column in (asked.get(role) or ()) if role in ("known", "past") else filter(None, [asked.get(role)]):
                if column not in names:
                    raise unknown(column, role, names)
        time = asked.get("time") or find_time(frame, asked, name, notes)
        stamps, dated, aware = read_stamps(time, frame[time])
        if layout is not None and dated != layout.frequency.dated:
            raise WonderlandError(
                f"Column {time!r} holds {'dates' if dated else 'numbers'}, and the run was fitted with {'numbers' if dated else 'dates'}."
            )
        if aware:
            notes.add(
                "time zone",
                time,
                len(frame),
                f"The stamps of {time!r} have an offset; they are read and written in UTC.",
            )
        targets = layout.targets if layout else choose_targets(frame, asked, time, notes)
        missing = [target for target in targets if target not in names]
        if missing and (need_target or layout is None):
            raise unknown(missing[0], "target", names)
        series = asked.get("series")
        labels = np.array([""] * len(frame)) if series is None else frame[series].astype(str).to_numpy()
        empty = ~np.isfinite(stamps) | (False if series is None else frame[series].isna().to_numpy())
        if empty.any():
            notes.add(
                "missing",
                time,
                int(empty.sum()),
                f"{counted(int(empty.sum()), 'row has', 'rows have')} no time or no series and {'is' if empty.sum() == 1 else 'are'} left out.",
            )
        if empty.all():
            raise WonderlandError(f"{name} has no rows with a time.")
        values = np.stack(
            [
                numbers_of(frame[target], target, notes) if target in names else np.full(len(frame), np.nan)
                for target in targets
            ],
            1,
        )
        covariates, levels = read_covariates(frame, asked, layout, notes)
        kept = np.flatnonzero(~empty)
        rows = kept[np.lexsort((stamps[kept], labels[kept]))]
        if series is None and (np.diff(stamps[kept]) < 0).any():
            notes.add(
                "order",
                time,
                int((np.diff(stamps[kept]) < 0).sum()),
                f"Rows are not in order of {time!r}; they are sorted.",
            )
        groups = np.split(rows, np.flatnonzero(labels[rows][1:] != labels[rows][:-1]) + 1)
        frequency = layout.frequency if layout else detect([np.unique(stamps[part]) for part in groups], dated, aware)
        tracks, present = to_grid(groups, labels, stamps, values, covariates, frequency, notes, time)
        tracks = trimmed(tracks, present, targets, notes, need_target)
        if layout is None:
            season = asked.get("season")
            if season is None:
                season, correlation = detect_season([filled(track.values)[:, 0] for track in tracks], frequency)
                found = f"a season of {season} steps (autocorrelation {correlation:.2f})" if season > 1 else "no season"
                notes.add("season", time, season, f"The stamps are {frequency.name}, with {found}.")
            layout = Layout(
                time,
                tuple(targets),
                series,
                tuple(asked.get("known") or ()),
                tuple(asked.get("past") or ()),
                frequency,
                season,
                levels,
            )
        return Panel(tracks, layout, name=name, origin=origin, findings=notes.findings)

    def __len__(self) -> int:
        return sum(len(track.values) for track in self.tracks)

    def summary(self) -> list[dict[str, Any]]:
        rows = []
        for track in self.tracks[:200]:
            places = np.array([track.start, track.stop - 1])
            begin, end = self.layout.frequency.texts(places)
            known = track.values[np.isfinite(track.values)]
            rows.append(
                {
                    "series": track.name or self.layout.targets[0] + ("" if len(self.layout.targets) == 1 else ", ..."),
                    "from": str(begin), "to": str(end), "steps": len(track.values),
                    "missing": int(np.isnan(track.values).sum()),
                    "mean": float(known.mean()) if len(known) else None,
                    "least": float(known.min()) if len(known) else None,
                    "most": float(known.max()) if len(known) else None,
                }
            )  # fmt: skip
        return rows

    def headline(self) -> str:
        targets, season = len(self.layout.targets), self.layout.season
        columns = "" if targets == 1 else f" of {targets} columns"
        return (
            f"{self.name}: {len(self.tracks):,} {'series' if columns == '' else 'series' + columns}, {counted(len(self), 'step', 'steps')}, "
            f"{self.layout.frequency.name}, {f'season {season}' if season > 1 else 'no season'}"
        )

    def example(self, i: int) -> dict[str, Any]:
        """One step."""
        for track in self.tracks:
            if i < len(track.values):
                text = self.layout.frequency.texts(np.array([track.start + i]))[0]
                return {"series": track.name, "time": text} | dict(
                    zip(self.layout.targets, map(float, track.values[i]), strict=True)
                )
            i -= len(track.values)
        raise IndexError(i)


class Notes:
    """Findings about one source."""

    def __init__(self, name: str, findings: list[Finding]):
        self.name, self.findings = name, findings

    def add(self, kind: str, subject: str, count: int, text: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, subject, count, text))


def unknown(column: str, role: str, names: Sequence[str]) -> WonderlandError:
    """The error for a column that is not there."""
    hint = nearest(str(column), names) or f" The columns are {', '.join(map(repr, list(names)[:8]))}."
    return WonderlandError(f"There is no column {column!r} (given as {role}).{hint}")


def find_time(frame: Any, asked: Mapping[str, Any], name: str, notes: Notes) -> str:
    """The column of times, by its name, or the only one that holds dates."""
    taken = {asked.get("target"), asked.get("series"), *(asked.get("known") or ()), *(asked.get("past") or ())}
    free = [column for column in frame.columns if column not in taken]
    for wanted in TIMES:
        for column in free:
            if column.strip().casefold() == wanted:
                return column
    dates = [column for column in free if read_column(column, frame[column]).kind == "date"]
    if len(dates) == 1:
        notes.add("time", dates[0], len(frame), f"Column {dates[0]!r} is taken as the time.")
        return dates[0]
    raise WonderlandError(
        f"{name} has {'several columns' if dates else 'no column'} of times: name it with time (--time)."
    )


def choose_targets(frame: Any, asked: Mapping[str, Any], time: str, notes: Notes) -> tuple[str, ...]:
    """The columns to predict: as asked, all that hold numbers, or the last one that does."""
    names, target = list(frame.columns), asked.get("target")
    taken = {time, asked.get("series"), *(asked.get("known") or ()), *(asked.get("past") or ())}
    if target in names:
        if target in taken:
            raise WonderlandError(
                f"Column {target!r} is the target, so it cannot be the time, the series or a covariate as well."
            )
        return (str(target),)
    if target is not None and target != "all":
        several = [part.strip() for part in target.split(",")]
        for column in several:
            if column not in names:
                raise unknown(column, "target", names)
        return tuple(dict.fromkeys(several))
    usable = [
        column
        for column in names
        if column not in taken
        and read_column(column, frame[column]).kind in ("number", "identifier", "constant")
        and pd.Series(pd.to_numeric(frame[column], errors="coerce")).notna().any()
    ]
    if not usable:
        raise WonderlandError("There is no column of numbers to forecast: name one with target (--target).")
    if target == "all":
        return tuple(usable)
    if len(usable) > 1:
        notes.add(
            "target",
            usable[-1],
            len(usable),
            f"Column {usable[-1]!r} is forecast; name another with target (--target), or all.",
        )
    return (usable[-1],)


def numbers_of(cells: Any, name: str, notes: Notes) -> np.ndarray:
    """A column as numbers, NaN where there is none."""
    numbers: Any = pd.to_numeric(cells, errors="coerce")
    values = numbers.to_numpy(np.float64, na_value=np.nan)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0]) + 1
        raise WonderlandError(
            f"Column {name!r} holds an infinite value in row {row}. Correct it, or leave the cell empty."
        )
    if not np.isfinite(values).any() and len(values):
        column = read_column(name, cells)
        values = column.values if column.levels is None and column.kind == "number" else values
    unread = int((~np.isfinite(values)).sum() - cells.isna().sum())
    if unread == len(values) and unread:
        raise WonderlandError(
            f"Column {name!r} holds {str(cells.iloc[0])[:40]!r} and no numbers, so it cannot be forecast."
        )
    if unread > 0:
        notes.add(
            "unread",
            name,
            unread,
            f"Column {name!r} has {counted(unread, 'cell that is no number and counts', 'cells that are no numbers and count')} as missing.",
        )
    return values


def read_covariates(
    frame: Any, asked: Mapping[str, Any], layout: Layout | None, notes: Notes
) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Covariates as numbers (n, k), categories as a column for each level; and the levels."""
    names = (*layout.known, *layout.past) if layout else (*(asked.get("known") or ()), *(asked.get("past") or ()))
    levels: dict[str, list[str]] = {name: list(made) for name, made in layout.levels.items()} if layout else {}
    made = []
    for name in names:
        if name not in frame.columns:
            raise unknown(name, "known" if layout and name in layout.known else "past", list(frame.columns))
        column = read_column(name, frame[name])
        if name in levels or (layout is None and column.levels is not None):
            texts = frame[name].astype(str).where(frame[name].notna(), "").to_numpy()
            if name not in levels:
                found, counts = np.unique(texts[texts != ""], return_counts=True)
                levels[name] = sorted(found[np.argsort(-counts, kind="stable")][:LEVELS].tolist())
                if len(found) > LEVELS:
                    notes.add(
                        "levels",
                        name,
                        len(found),
                        f"Column {name!r} has {len(found)} categories; the {LEVELS} most frequent are used.",
                    )
            made += [(texts == level).astype(np.float64) for level in levels[name]]
        else:
            made.append(
                column.values.astype(np.float64) if column.levels is None else numbers_of(frame[name], name, notes)
            )
    return (np.stack(made, 1) if made else np.zeros((len(frame), 0))), levels


def to_grid(groups: list[np.ndarray], labels: np.ndarray, stamps: np.ndarray, values: np.ndarray, covariates: np.ndarray,
            frequency: Frequency, notes: Notes, time: str) -> tuple[list[Track], list[np.ndarray]]:  # fmt: skip
    """Each series on the grid: stamps between two places are moved to the nearer one, several at one place are averaged, missing
    ones hold NaN. Beside the series, which places had a row."""
    tracks, present, doubled, moved, gaps, autumn = [], [], 0, 0, 0, 0
    most = SPAN * len(stamps) + 10_000
    for rows in groups:
        places, off = frequency.places(stamps[rows])
        start, length = int(places.min()), int(np.ptp(places)) + 1
        if length > most:
            begin, end = frequency.texts(np.array([places.min(), places.max()]))
            raise WonderlandError(
                f"The stamps of {time!r} go from {begin} to {end}, which is {length:,} steps ({frequency.name}) for {len(rows):,} rows: "
                "correct the stamps, or leave the far ones out."
            )
        moved += int((off > 1e-3).sum()) if frequency.unit != "month" else 0
        grid = [averaged(places - start, part[rows], length) for part in (values, covariates)]
        repeats = len(rows) - len(np.unique(places))
        doubled += repeats
        gaps += length - (len(rows) - repeats)
        if repeats and frequency.dated and frequency.step <= 3600:
            again = stamps[rows][1:][np.diff(places) == 0]
            month, hour = np.floor(months_in_year(again)), np.mod(again, DAY) / 3600
            autumn += int((np.isin(month, (3, 9, 10)) & (hour <= 4)).sum())
        tracks.append(Track(str(labels[rows[0]]), start, *grid))
        present.append(np.isin(np.arange(length), places - start))
    if doubled:
        clocks = (
            " They look like the hour that a clock repeats when daylight saving ends."
            if autumn and autumn >= 0.9 * doubled
            else ""
        )
        notes.add(
            "duplicate",
            time,
            doubled,
            f"{counted(doubled, 'row repeats', 'rows repeat')} a stamp of the same series; values of one stamp are averaged.{clocks}",
        )
    if moved:
        notes.add(
            "irregular",
            time,
            moved,
            f"{counted(moved, 'stamp lies', 'stamps lie')} between two steps ({frequency.name}) and {'is' if moved == 1 else 'are'} moved to the nearer one.",
        )
    if gaps:
        notes.add(
            "gap",
            time,
            gaps,
            f"{counted(gaps, 'stamp is', 'stamps are')} missing ({frequency.name}); models read the value of a season before, and nothing is measured there.",
        )
    return tracks, present


def months_in_year(stamps: np.ndarray) -> np.ndarray:
    """The month, from 0."""
    return np.mod(
        np.floor(stamps / DAY).astype(np.int64).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64), 12
    )


def averaged(places: np.ndarray, values: np.ndarray, length: int) -> np.ndarray:
    """The mean of the known values at each place; NaN where there is none."""
    sums, counts = np.zeros((length, values.shape[1])), np.zeros((length, values.shape[1]))
    np.add.at(sums, places, np.nan_to_num(values))
    np.add.at(counts, places, np.isfinite(values))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def trimmed(
    tracks: list[Track], present: list[np.ndarray], targets: Sequence[str], notes: Notes, need_target: bool
) -> list[Track]:
    """Series from their first to their last known value; rows after it hold covariates that are known in the future."""
    kept, empty, holes = [], [], 0
    for track, rows in zip(tracks, present, strict=True):
        known = np.flatnonzero(np.isfinite(track.values).any(1))
        if not len(known):
            empty.append(track.name)
            if not need_target:
                kept.append(Track(track.name, track.start, track.values[:0], track.covariates))
            continue
        first, last = int(known[0]), int(known[-1]) + 1
        values = track.values[first:last]
        holes += int(np.isnan(values[rows[first:last]]).sum())
        kept.append(Track(track.name, track.start + first, values, track.covariates[first:]))
    if empty and need_target:
        if not kept:
            raise WonderlandError(f"Column {targets[0]!r} has no values, so there is nothing to forecast.")
        notes.add(
            "empty",
            empty[0],
            len(empty),
            f"{counted(len(empty), 'series has', 'series have')} no values and {'is' if len(empty) == 1 else 'are'} left out.",
        )
    if holes:
        notes.add(
            "missing",
            targets[0],
            holes,
            f"{counted(holes, 'value is', 'values are')} missing; models read the value of a season before, and nothing is measured there.",
        )
    return kept


def filled(values: np.ndarray, season: int = 1) -> np.ndarray:
    """Missing values replaced by the value one season before, else by the last one; only the past is used.

    >>> filled(np.array([[1.0], [2.0], [np.nan], [4.0], [np.nan]]), season=2)[:, 0].tolist()
    [1.0, 2.0, 1.0, 4.0, 1.0]
    """
    made = values.copy()
    for row in np.flatnonzero(np.isnan(made).any(1)):
        hole = np.isnan(made[row])
        before = made[row - season] if row >= season else np.full(made.shape[1], np.nan)
        last = made[row - 1] if row else np.zeros(made.shape[1])
        made[row, hole] = np.where(np.isfinite(before), before, last)[hole]
    return made
