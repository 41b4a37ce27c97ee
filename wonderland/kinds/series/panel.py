"""Panel: one or many series on one grid of time, read from a table in long form; faults are repaired and told."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wonderland.core import WonderlandError
from wonderland.data.dataset import Dataset, Finding, counted
from wonderland.kinds.series.columns import (
    Layout,
    Notes,
    choose_targets,
    find_time,
    numbers_of,
    read_covariates,
    unknown,
)
from wonderland.kinds.series.grid import Track, filled, to_grid, trimmed
from wonderland.kinds.series.stamps import detect, detect_season, read_stamps


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
                season_words = (
                    f"a season of {season} steps (autocorrelation {correlation:.2f})" if season > 1 else "no season"
                )
                notes.add("season", time, season, f"The stamps are {frequency.name}, with {season_words}.")
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
