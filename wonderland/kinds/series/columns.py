"""Which columns of a table hold times, targets and covariates of series, and their cells as numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.columns import read_column
from wonderland.data.dataset import Finding, counted
from wonderland.kinds.series.stamps import Frequency

TIMES = (
    "date",
    "datetime",
    "timestamp",
    "time",
    "ds",
    "ts",
    "day",
    "month",
    "week",
    "year",
    "period",
    "quarter",
    "hour",
    "when",
)
LEVELS = 8  # categories of a covariate that get a column each


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
        return [column for name in (*self.known, *self.past) for column in self._columns(name)]

    @property
    def known_count(self) -> int:
        """How many columns of covariates are known in the future; they come first."""
        return sum(len(self._columns(name)) for name in self.known)

    def _columns(self, name: str) -> list[str]:
        return [f"{name} = {level}" for level in self.levels[name]] if name in self.levels else [name]


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
    levels: dict[str, list[str]] = {name: list(columns) for name, columns in layout.levels.items()} if layout else {}
    columns = []
    for name in names:
        if name not in frame.columns:
            raise unknown(name, "known" if layout and name in layout.known else "past", list(frame.columns))
        column = read_column(name, frame[name])
        if name in levels or (layout is None and column.levels is not None):
            texts = frame[name].astype(str).where(frame[name].notna(), "").to_numpy()
            if name not in levels:
                categories, counts = np.unique(texts[texts != ""], return_counts=True)
                levels[name] = sorted(categories[np.argsort(-counts, kind="stable")][:LEVELS].tolist())
                if len(categories) > LEVELS:
                    notes.add(
                        "levels",
                        name,
                        len(categories),
                        f"Column {name!r} has {len(categories)} categories; the {LEVELS} most frequent are used.",
                    )
            columns += [(texts == level).astype(np.float64) for level in levels[name]]
        else:
            columns.append(
                column.values.astype(np.float64) if column.levels is None else numbers_of(frame[name], name, notes)
            )
    return (np.stack(columns, 1) if columns else np.zeros((len(frame), 0))), levels
