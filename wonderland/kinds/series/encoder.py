"""What is fitted to the training part of series: their scales, and what is kept of them so that a run can continue them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding, counted
from wonderland.data.encoder import Encoder, Field
from wonderland.data.examples import Examples
from wonderland.data.ports import Preprocessing, Trial
from wonderland.data.source import Glimpse
from wonderland.kinds.series.columns import Layout
from wonderland.kinds.series.grid import Track, filled
from wonderland.kinds.series.panel import Panel
from wonderland.kinds.series.program import SeriesProgram
from wonderland.kinds.series.stamps import Frequency
from wonderland.kinds.series.trials import series_trials
from wonderland.kinds.series.windows import Geometry, Windows

REFUSAL = "The preprocessing of this run is not for series: it is damaged or not ours."


class SeriesEncoder(Encoder):
    """Mean and scale of each series from its training part, in which models work, and the last steps of each series."""

    kind = "series"
    classes = None

    def __init__(self, layout: Layout, geometry: Geometry, names: list[str], saved: dict[str, Tensor], source: str):
        self.layout, self.geometry, self.names, self.saved, self.source = layout, geometry, names, saved, source
        self.noticed: list[Finding] = []
        self.places = {name: number for number, name in enumerate(names)}

    @staticmethod
    def fitted(panel: Panel, geometry: Geometry) -> "SeriesEncoder":
        """Fitted to the steps before the first cut; a series that begins later is scaled by its first context."""
        season, kept = panel.layout.season, max(geometry.context, 2 * panel.layout.season) + 1
        scales = [scales_of(track, geometry, season) for track in panel.tracks]
        covariates = np.concatenate(
            [track.covariates[: max(2, geometry.cuts[0] - track.start)] for track in panel.tracks]
        )
        known = np.isfinite(covariates)
        count = np.maximum(known.sum(0), 1)
        mean = np.where(known, covariates, 0).sum(0) / count
        scale = np.sqrt((np.where(known, covariates - mean, 0) ** 2).sum(0) / count)
        tails = [track.values[-kept:] for track in panel.tracks]
        begins = [track.stop - len(tail) for track, tail in zip(panel.tracks, tails, strict=True)]
        shown = [track.covariates[begin - track.start :] for track, begin in zip(panel.tracks, begins, strict=True)]
        saved = {
            "mean": np.stack([scale[0] for scale in scales]),
            "scale": np.stack([scale[1] for scale in scales]),
            "naive": np.stack([scale[2] for scale in scales]),
            "covariate_mean": mean,
            "covariate_scale": np.where(scale > 0, scale, 1.0),
            "values": np.concatenate(tails),
            "lengths": np.array([len(tail) for tail in tails]),
            "starts": np.array(begins),
            "covariates": np.concatenate(shown),
            "covariate_lengths": np.array([len(part) for part in shown]),
        }
        tensors = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in saved.items()}
        return SeriesEncoder(panel.layout, geometry, [track.name for track in panel.tracks], tensors, panel.name)

    def scale_of(self, track: Track) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean, scale and the mean change from season to season of a series; of a new one by its own steps."""
        number = self.places.get(track.name)
        if number is None:
            later = Geometry(
                self.geometry.context, self.geometry.horizon, (track.stop, track.stop, track.stop, track.stop)
            )
            return scales_of(track, later, self.layout.season)
        return (
            self.saved["mean"][number].numpy(),
            self.saved["scale"][number].numpy(),
            self.saved["naive"][number].numpy(),
        )

    def scaled_covariates(self, panel: Panel) -> list[np.ndarray]:
        """The covariates of each series in a common scale, holes filled by the last value."""
        mean, scale = self.saved["covariate_mean"].numpy(), self.saved["covariate_scale"].numpy()
        covariates = []
        for track in panel.tracks:
            scaled = (track.covariates - mean) / scale
            if np.isnan(scaled[:1]).any():
                scaled[:1] = np.nan_to_num(scaled[:1])
            covariates.append(filled(scaled) if len(scaled) else np.zeros((1, len(mean))))
        return covariates

    def examples(self, dataset: Any) -> Examples:
        self.noticed = []
        short = (
            sum(len(track.values) < self.geometry.horizon for track in dataset.tracks) if dataset.begins is None else 0
        )
        if short:
            text = f"{counted(short, 'series is', 'series are')} shorter than the horizon of {self.geometry.horizon} steps: {'it is' if short == 1 else 'they are'} forecast, but not learned from."
            self.noticed.append(Finding("short", dataset.name, short, text))
        return Windows(dataset, self)

    def stored(self) -> list[Track]:
        """The last steps of each series that the run was fitted on."""
        values, covariates = self.saved["values"].numpy(), self.saved["covariates"].numpy()
        ends, covariate_ends = (
            np.cumsum(self.saved["lengths"].numpy()),
            np.cumsum(self.saved["covariate_lengths"].numpy()),
        )
        pieces = zip(
            self.names,
            self.saved["starts"].tolist(),
            np.split(values, ends[:-1]),
            np.split(covariates, covariate_ends[:-1]),
            strict=True,
        )
        return [Track(name, start, part, more) for name, start, part, more in pieces]

    def open_stored(self) -> Panel:
        panel = Panel(self.stored(), self.layout, name=self.source, origin={}, findings=[])
        panel.ahead = True
        self._note_unknown(panel)
        return panel

    def open(self, source: Any, *, need_target: bool = False) -> Panel:
        """New steps, joined to what is stored of their series."""
        contents = Glimpse(source).contents
        if contents.frame is None:
            raise WonderlandError(f"{contents.name} is no table of series.")
        layout = self.layout
        asked = {"time": layout.time, "series": layout.series, "known": layout.known}
        names = [str(column) for column in contents.frame.columns]
        # What is measured up to now is not needed for steps to come.
        given = Layout(**{**vars(layout), "past": layout.past})
        frame = contents.frame.set_axis(names, axis=1)
        for column in layout.past:
            if column not in names:
                frame = frame.assign(**{column: np.nan})
        new = Panel.read(
            frame,
            asked,
            name=contents.name,
            origin=contents.origin,
            findings=contents.findings,
            layout=given,
            need_target=need_target,
        )
        old = {track.name: track for track in self.stored()}
        joined = [join(old.get(track.name), track, self.geometry.context) for track in new.tracks]
        panel = Panel(joined, layout, name=contents.name, origin=contents.origin, findings=new.findings)
        panel.begins, panel.ahead = [track.start for track in new.tracks], not need_target
        unseen = [track.name for track in new.tracks if track.name not in old]
        if unseen:
            text = f"{counted(len(unseen), 'series was', 'series were')} not in the training data (for instance {unseen[0][:40]!r}) and {'is' if len(unseen) == 1 else 'are'} scaled by {'its' if len(unseen) == 1 else 'their'} own steps."
            panel.findings.append(Finding("new", unseen[0][:40], len(unseen), text))
        empty = [track.name for track in panel.tracks if not len(track.values)]
        if empty:
            raise WonderlandError(
                f"{contents.name} has no values of {', '.join(layout.targets)[:80]}{f' for {empty[0][:40]!r}' if empty[0] else ''}, and the run stores none to continue."
            )
        if panel.ahead:
            self._note_unknown(panel)
        return panel

    def _note_unknown(self, panel: Panel) -> None:
        """A finding where covariates are not given for the whole horizon."""
        if not self.layout.known:
            return
        short = sum(len(track.covariates) < len(track.values) + self.geometry.horizon for track in panel.tracks)
        if short:
            text = f"{', '.join(self.layout.known)[:80]}: {counted(short, 'series has', 'series have')} no values for the whole horizon; the last one is kept."
            panel.findings.append(Finding("known", self.layout.known[0], short, text))

    together = True

    def schema(self) -> list[Field]:
        layout = self.layout
        fields = [Field(layout.time, "date" if layout.frequency.dated else "number")]
        fields += [Field(layout.series, "category", levels=tuple(self.names[:1000]))] if layout.series else []
        fields += [Field(name, "number") for name in layout.targets]
        return [
            *fields,
            *(
                Field(
                    name, "category" if name in layout.levels else "number", levels=tuple(layout.levels.get(name, ()))
                )
                for name in (*layout.known, *layout.past)
            ),
        ]

    trial_words = "the steps after each series, and made up series with gaps, in batches of 1, 3 and 100"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return SeriesProgram(self)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return series_trials(self)

    def arguments(self) -> dict[str, Any]:
        layout, geometry = self.layout, self.geometry
        calendar = layout.frequency.calendar(np.zeros(1, np.int64)).shape[1]
        return {
            "context": geometry.context,
            "horizon": geometry.horizon,
            "channels": len(layout.targets),
            "known": calendar + len(layout.covariates),
            "season": layout.season,
        }

    def describe(self) -> str:
        return f"Forecasts of {self.geometry.horizon} steps from the {self.geometry.context} steps before. "

    def batch_words(self, size: int, noun: str) -> str:
        return f"{size} windows"

    def to_json(self) -> dict[str, Any]:
        layout, geometry = self.layout, self.geometry
        return {
            "kind": self.kind, "time": layout.time, "targets": list(layout.targets), "series": layout.series,
            "known": list(layout.known), "past": list(layout.past), "frequency": layout.frequency.to_json(), "season": layout.season,
            "levels": {name: list(levels) for name, levels in layout.levels.items()}, "context": geometry.context,
            "horizon": geometry.horizon, "cuts": list(geometry.cuts), "names": self.names, "source": self.source,
        }  # fmt: skip

    def tensors(self) -> dict[str, Tensor]:
        return self.saved


def scales_of(track: Track, geometry: Geometry, season: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and standard deviation of the training part of a series, and its mean absolute change from season to season: (c,)."""
    train = track.values[: max(0, geometry.cuts[0] - track.start)]
    if np.isfinite(train).sum(0).min() < 2:
        train = track.values[: max(2, geometry.context)]
    known = np.isfinite(train)
    count = np.maximum(known.sum(0), 1)
    mean = np.where(known, train, 0).sum(0) / count
    scale = np.sqrt((np.where(known, train - mean, 0) ** 2).sum(0) / count)
    lag = season if len(train) > season else 1
    change = np.abs(train[lag:] - train[:-lag])
    measured = np.isfinite(change)
    naive = np.where(measured, change, 0).sum(0) / np.maximum(measured.sum(0), 1)
    return mean, np.where(scale > 1e-12 * np.maximum(1.0, np.abs(mean)), scale, 1.0), naive


def join(old: Track | None, new: Track, context: int) -> Track:
    """New steps after, or over, what is stored; what lies further back than a context is not joined."""
    if old is None:
        return new
    if not len(new.values):
        start, stop = old.start, old.stop
    else:
        start, stop = min(old.start, new.start), max(new.stop, min(old.stop, new.start))
        if new.start - old.stop > context or new.stop < old.start:
            return new
    values = np.full((stop - start, old.values.shape[1]), np.nan)
    far = max(stop, old.start + len(old.covariates), new.start + len(new.covariates))
    covariates = np.full((far - start, old.covariates.shape[1]), np.nan)
    for track in (old, new):
        kept = track.values[: stop - track.start]
        known = np.isfinite(kept)
        place = values[track.start - start : track.start - start + len(kept)]
        place[known] = kept[known]
        known = np.isfinite(track.covariates)
        place = covariates[track.start - start : track.start - start + len(track.covariates)]
        place[known] = track.covariates[known]
    return Track(new.name, start, values, covariates)


def read_encoder(saved: Any, tensors: dict[str, Tensor]) -> SeriesEncoder:
    """The encoder of a run folder, which may be damaged or hostile."""
    try:
        texts = [
            saved["time"],
            *saved["targets"],
            *saved["known"],
            *saved["past"],
            *saved["names"],
            saved["source"],
            saved["series"] or "",
        ]
        levels = {name: list(names) for name, names in saved["levels"].items()}
        texts += [text for name, names in levels.items() for text in (name, *names)]
        sizes = [saved["season"], saved["context"], saved["horizon"]]
        fine = all(isinstance(text, str) for text in texts) and all(
            isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= 200_000 for size in sizes
        )
        cuts = tuple(saved["cuts"])
        fine = (
            fine
            and len(cuts) == 4
            and all(isinstance(cut, int) and abs(cut) < 1 << 40 for cut in cuts)
            and list(cuts) == sorted(cuts)
        )
        layout = Layout(saved["time"], tuple(saved["targets"]), saved["series"], tuple(saved["known"]), tuple(saved["past"]),
                        Frequency.from_json(saved["frequency"]), saved["season"], levels)  # fmt: skip
        n, c, k = len(saved["names"]), len(layout.targets), len(layout.covariates)
        rows, more = len(tensors["values"]), len(tensors["covariates"])
        shapes = {"mean": (n, c), "scale": (n, c), "naive": (n, c), "covariate_mean": (k,), "covariate_scale": (k,), "values": (rows, c),
                  "covariates": (more, k), "lengths": (n,), "starts": (n,), "covariate_lengths": (n,)}  # fmt: skip
        fine = fine and n > 0 and c > 0 and set(tensors) == set(shapes)
        fine = fine and all(tuple(tensors[name].shape) == shape for name, shape in shapes.items())
        for name in ("lengths", "starts", "covariate_lengths"):
            fine = fine and tensors[name].dtype == torch.int64
        fine = fine and all(
            tensors[name].dtype == torch.float64
            for name in ("mean", "scale", "naive", "values", "covariates", "covariate_mean", "covariate_scale")
        )
        fine = fine and bool(
            (tensors["lengths"] >= 0).all()
            and (tensors["covariate_lengths"] >= 0).all()
            and (tensors["starts"].abs() < 1 << 40).all()
        )
        fine = fine and int(tensors["lengths"].sum()) == rows and int(tensors["covariate_lengths"].sum()) == more
        fine = fine and bool((tensors["scale"] > 0).all() and (tensors["covariate_scale"] > 0).all())
        fine = fine and bool(tensors["starts"].max() - tensors["starts"].min() < 50_000_000)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise WonderlandError(REFUSAL) from error
    if not fine:
        raise WonderlandError(REFUSAL)
    geometry = Geometry(saved["context"], saved["horizon"], (cuts[0], cuts[1], cuts[2], cuts[3]))
    return SeriesEncoder(layout, geometry, list(saved["names"]), tensors, saved["source"])
