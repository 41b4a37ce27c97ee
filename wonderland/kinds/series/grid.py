"""Series on a grid of time: rows at their places, several at one place averaged, holes marked or filled from the past."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wonderland.core import WonderlandError
from wonderland.data.dataset import counted
from wonderland.kinds.series.columns import Notes
from wonderland.kinds.series.stamps import DAY, Frequency

SPAN = 50  # a grid may have so many steps for each row, and 10,000 more


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
    complete = values.copy()
    for row in np.flatnonzero(np.isnan(complete).any(1)):
        hole = np.isnan(complete[row])
        before = complete[row - season] if row >= season else np.full(complete.shape[1], np.nan)
        last = complete[row - 1] if row else np.zeros(complete.shape[1])
        complete[row, hole] = np.where(np.isfinite(before), before, last)[hole]
    return complete
