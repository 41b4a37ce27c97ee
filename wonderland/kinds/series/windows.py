"""Windows of a panel: a context, and the steps after it; parts and periods of fitting are cut by time, so nothing later is read."""

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core import WonderlandError, permutation
from wonderland.core.batch import Batch
from wonderland.data.dataset import counted
from wonderland.data.examples import Examples
from wonderland.data.split import Split
from wonderland.kinds.series.grid import filled
from wonderland.kinds.series.panel import Panel

CHUNK = 512
MOST_TRAINING = 1_000_000


@dataclass(frozen=True)
class Geometry:
    """The sizes of windows, and the places at which training, validation, calibration and test end."""

    context: int
    horizon: int
    cuts: tuple[int, int, int, int]

    def eras(self, origins: np.ndarray) -> np.ndarray:
        """How much a forecast from these places may have been fitted on: 0 the training part, 1 and validation, 2 and
        calibration, 3 everything."""
        return np.searchsorted(np.array(self.cuts[1:]), origins, side="right")


def measure(panel: Panel, test: float) -> Geometry:
    """Horizon, context and cuts for a panel: a fifth of the time for the test, a tenth each for validation and calibration,
    more where that is less than a few windows."""
    options: Any = panel.options
    begin, stop = min(track.start for track in panel.tracks), max(track.stop for track in panel.tracks)
    span, season = stop - begin, panel.layout.season
    asked = None if options is None else options.horizon
    horizon = asked or max(1, min(season if season > 1 else 12, (span - 2) // 5))
    least = 4 * horizon + max(2, horizon // 2)
    if span < least:
        most = max(0, (2 * span - 4) // 9)
        advice = f"a horizon of at most {most}" if most else "longer series"
        raise WonderlandError(
            f"{panel.name} has {counted(span, 'step', 'steps')}, too few to learn and to measure forecasts of {horizon} steps, which take {least}: "
            f"give {advice}."
        )
    parts = [max(round(test * span), horizon), *[max(round(0.1 * span), 2 * horizon)] * 2]
    if span - sum(parts) < max(0.4 * span, 3 * horizon):
        parts = [max(min(parts[0], round(0.2 * span)), horizon), *[max(round(0.12 * span), horizon)] * 2]
    if span - sum(parts) < horizon + 2:
        parts = [horizon] * 3
    train = span - sum(parts)
    seasons = [
        season,
        *[
            length
            for length in panel.layout.frequency.seasons()
            if season > 1 and length * 6 <= train and length <= 400
        ],
    ]
    wanted = max(-(-7 * horizon // 2), 3 * season, 2 * max(seasons), 8)
    wanted = -(-wanted // season) * season
    room = max(1, int(0.6 * (train - horizon)))
    if wanted > room:
        wanted = max(room // season * season if room >= 2 * season else room, 1)
    chosen = None if options is None else options.context
    if chosen is not None and chosen + horizon > train:
        raise WonderlandError(
            f"A context of {chosen} and a horizon of {horizon} steps do not fit into the {train} steps to train on: give a shorter context."
        )
    test_start = stop - parts[0]
    cuts = (test_start - parts[1] - parts[2], test_start - parts[1], test_start, stop)
    return Geometry(chosen or wanted, horizon, cuts)


def split_by_time(panel: Panel, geometry: Geometry, series: np.ndarray, origins: np.ndarray, seed: int) -> Split:
    """The windows of each part by number: their targets lie within the part's time; every window of the test is measured."""
    end, cuts = origins + geometry.horizon, geometry.cuts
    train = np.flatnonzero(end <= cuts[0])
    parts = [np.flatnonzero((origins >= first) & (end <= last)) for first, last in itertools.pairwise(cuts)]
    note = f"By time: the parts end at {', '.join(map(str, panel.layout.frequency.texts(np.array(cuts) - 1)))}."
    if len(train) > MOST_TRAINING:
        train = train[:: -(-len(train) // MOST_TRAINING)]
        note += f" {len(train):,} windows, evenly spaced, serve for training."
    for name, rows in zip(("training", "validation", "calibration", "test"), [train, *parts], strict=True):
        if not len(rows):
            raise WonderlandError(
                f"No series has {geometry.horizon} steps in the time of the {name} part: give longer series, or a shorter horizon."
            )
    settings = {"context": geometry.context, "horizon": geometry.horizon, "cuts": list(cuts)}
    return Split(train, *parts, note=note, seed=seed, settings=settings)


def enumerate_windows(panel: Panel, geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    """Series and origin of every window whose targets are within a series; short series get padded contexts."""
    series, origins = [], []
    for number, track in enumerate(panel.tracks):
        begin = track.start if panel.begins is None else max(track.start, panel.begins[number])
        least = geometry.context if len(track.values) >= geometry.context + geometry.horizon else 1
        first = max(begin, track.start + (least if panel.begins is None else 1))
        last = track.stop - geometry.horizon
        if panel.begins is not None and last < first <= track.stop - 1:
            last = first  # new data shorter than the horizon: one window, measured as far as they reach
        starts = np.arange(first, last + 1)
        series.append(np.full(len(starts), number))
        origins.append(starts)
    return np.concatenate(series).astype(np.int64), np.concatenate(origins).astype(np.int64)


class WindowBatch(Batch):
    """A batch that also knows where it was cut from, for learners that fit all windows at once."""

    examples: Any
    part: Any


class Windows(Examples):
    """The windows of a panel. Fields of a batch, in the scale of each series: x (b, context, c), known (b, context + horizon, k),
    y and mask (b, horizon, c), and about (b, 1 + 2 c): the period of fitting, and mean and scale of the series.
    """

    unit = "window"

    def __init__(self, panel: Panel, encoder: Any):
        self.panel, self.geometry, self.layout = panel, encoder.geometry, panel.layout
        context, horizon = self.geometry.context, self.geometry.horizon
        scales = [encoder.scale_of(track) for track in panel.tracks]
        self.mean, self.scale, self.naive = (np.stack([scale[i] for scale in scales]) for i in range(3))
        self.lengths = np.array([len(track.values) for track in panel.tracks])
        self.starts = np.array([track.start for track in panel.tracks])
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        self.raw = np.concatenate([track.values for track in panel.tracks])
        season = self.layout.season
        read = np.concatenate([filled(track.values, season) for track in panel.tracks])
        owner = np.repeat(np.arange(len(panel.tracks)), self.lengths)
        self.values = torch.from_numpy(((read - self.mean[owner]) / self.scale[owner]).astype(np.float32))
        self.truth = torch.from_numpy(((self.raw - self.mean[owner]) / self.scale[owner]).astype(np.float32))
        self.first_place = int(self.starts.min()) - context
        last = int((self.starts + self.lengths).max()) + horizon
        self.calendar = torch.from_numpy(self.layout.frequency.calendar(np.arange(self.first_place, last)))
        self.covariates = encoder.scaled_covariates(panel)
        self.covariate_offsets = np.concatenate([[0], np.cumsum([len(c) for c in self.covariates])])
        self.flat_covariates = torch.from_numpy(np.concatenate(self.covariates).astype(np.float32))
        self.series, self.origins = enumerate_windows(panel, self.geometry)

    def rows(self, part: Any) -> tuple[np.ndarray, np.ndarray]:
        """Series and origins of a part: numbers of windows, or a pair of series and origins themselves."""
        if isinstance(part, tuple):
            return part
        return self.series[part], self.origins[part]

    def take(self, part: Any) -> Batch:
        """Some windows as a batch."""
        series, origins = self.rows(part)
        context, horizon = self.geometry.context, self.geometry.horizon
        base, local = self.offsets[series][:, None], (origins - self.starts[series])[:, None]
        back = np.clip(local + np.arange(-context, 0), 0, np.maximum(self.lengths[series][:, None] - 1, 0))
        ahead = local + np.arange(horizon)
        inside = ahead < self.lengths[series][:, None]
        x = self.values[torch.from_numpy(base + back)]
        y = self.truth[torch.from_numpy(base + np.minimum(ahead, self.lengths[series][:, None] - 1))]
        mask = torch.from_numpy(inside)[..., None] & torch.isfinite(y)
        places = (origins - self.first_place)[:, None] + np.arange(-context, horizon)
        known = self.calendar[torch.from_numpy(places)]
        if self.flat_covariates.shape[1]:
            known = torch.cat([known, self.covariates_of(series, local)], -1)
        era = self.geometry.eras(origins)[:, None]
        about = np.concatenate([era, self.mean[series], self.scale[series]], 1).astype(np.float64)
        return Batch(
            {"x": x, "known": known, "y": torch.where(mask, y, 0.0), "mask": mask, "about": torch.from_numpy(about)}
        )

    def covariates_of(self, series: np.ndarray, local: np.ndarray) -> Tensor:
        """Covariates along context and horizon; those of the past keep their last value."""
        context, horizon = self.geometry.context, self.geometry.horizon
        lengths = np.diff(self.covariate_offsets)[series][:, None]
        base = self.covariate_offsets[:-1][series][:, None]
        along = np.clip(local + np.arange(-context, horizon), 0, lengths - 1)
        covariates = self.flat_covariates[torch.from_numpy(base + along)]
        held = self.layout.known_count
        if held < covariates.shape[-1]:
            covariates[:, context:, held:] = covariates[:, context - 1 : context, held:]
        return covariates

    def targets(self, part: Any) -> np.ndarray:
        """True values (n, horizon, c) in the scale of the data, NaN where unknown."""
        series, origins = self.rows(part)
        ahead = (origins - self.starts[series])[:, None] + np.arange(self.geometry.horizon)
        length = self.lengths[series][:, None]
        values = self.raw[self.offsets[series][:, None] + np.minimum(ahead, length - 1)]
        return np.where((ahead < length)[..., None], values, np.nan)

    def shuffled(self, part: Any, *, size: int, seed: int, rows: Sequence[np.ndarray] | None = None, augment: Any = None, workers: int = 0) -> "WindowBatches":  # fmt: skip
        return WindowBatches(self, part, size, seed)

    def in_order(self, part: Any, *, size: int = CHUNK, most: int | None = None) -> Iterator[Batch]:
        series, origins = self.rows(part)
        count = len(origins) if most is None else min(most, len(origins))
        return (
            self.take((series[first : min(count, first + size)], origins[first : min(count, first + size)]))
            for first in range(0, count, size)
        )

    def count(self, part: Any) -> int:
        return len(self.rows(part)[0])

    def everything(self) -> Any:
        """All windows; of new data that are to be continued, the steps after the last one of each series."""
        if self.panel.ahead:
            return np.arange(len(self.starts)), self.starts + self.lengths
        if not len(self.origins):
            raise WonderlandError(
                f"{self.panel.name} holds no step after its first, so no forecast can be measured: give more steps."
            )
        return np.arange(len(self.origins))

    def each_step(self) -> tuple[np.ndarray, np.ndarray]:
        """A window for each new step, which is the first of its horizon: what one step ahead is compared with."""
        series, origins = [], []
        for number, track in enumerate(self.panel.tracks):
            begin = track.start if self.panel.begins is None else self.panel.begins[number]
            starts = np.arange(max(begin, track.start + 1), track.stop)
            series.append(np.full(len(starts), number))
            origins.append(starts)
        return np.concatenate(series), np.concatenate(origins)

    def first(self, part: Any, count: int = 1) -> Batch:
        return next(self.in_order(part, size=count))

    def table(
        self, series: np.ndarray, places: np.ndarray, columns: dict[str, np.ndarray], *, steps: bool
    ) -> pd.DataFrame:
        """Places (n, h) of series with values (n, h, c), as rows in long form."""
        layout, (n, h) = self.layout, places.shape
        c = len(layout.targets)
        names = np.array([track.name for track in self.panel.tracks], dtype=object)
        unique, inverse = np.unique(places, return_inverse=True)
        texts = np.array(layout.frequency.texts(unique), dtype=object)[inverse.reshape(-1)]
        columns_of_table: dict[str, Any] = {}
        if layout.series is not None:
            columns_of_table[layout.series] = np.repeat(names[series], h * c)
        columns_of_table[layout.time] = np.repeat(texts, c)
        if c > 1:
            columns_of_table["target"] = np.tile(np.array(layout.targets, dtype=object), n * h)
        if steps:
            columns_of_table["step"] = np.tile(np.repeat(np.arange(1, h + 1), c), n)
        return pd.DataFrame(
            columns_of_table | {name: values.reshape(-1) for name, values in columns.items()}
        ).infer_objects()

    def pictures(
        self, walk: Callable[[Any], list[Any]], part: Any, radius: np.ndarray, most: int
    ) -> list[dict[str, Any]]:
        """What is drawn of a few series and columns: recent values, the last window of a part, and the steps to come."""
        series, origins = self.rows(part)
        drawn: list[dict[str, Any]] = []
        for number in dict.fromkeys(series[np.argsort(-self.lengths[series], kind="stable")].tolist()):
            last, track = int(origins[series == number].max()), self.panel.tracks[number]
            rows = (np.array([number, number]), np.array([last, track.stop]))
            figures = [
                (forecasts, forecasts - spread * radius, forecasts + spread * radius)
                for _, _, forecasts, spread, _ in walk(rows)
            ]
            ends = [np.concatenate([piece[i] for piece in figures]) for i in range(3)]
            shown = max(3 * self.geometry.horizon, 2 * self.layout.season) + track.stop - last
            for channel, target in enumerate(self.layout.targets):
                history = track.values[-shown:, channel]
                begin = track.stop - len(history)
                name = " · ".join(
                    filter(None, [track.name, target if len(self.layout.targets) > 1 or not track.name else ""])
                )
                pieces = [
                    {
                        "begin": int(first) - begin,
                        "forecast": numbers(ends[0][i, :, channel]),
                        "low": numbers(ends[1][i, :, channel]),
                        "high": numbers(ends[2][i, :, channel]),
                    }
                    for i, first in enumerate(rows[1])
                ]
                places = np.arange(begin, track.stop + self.geometry.horizon)
                ticks = [int(i) for i in np.linspace(0, len(places) - 1, 5)]
                texts = self.layout.frequency.texts(places[ticks])
                labels = [[tick, str(text)[:10]] for tick, text in zip(ticks, texts, strict=True)]
                drawn.append({"name": name, "history": numbers(history), "labels": labels, "pieces": pieces})
                if len(drawn) == most:
                    return drawn
        return drawn

    def before(self, cut: int) -> np.ndarray:
        """Numbers of the windows whose targets end before a place."""
        return np.flatnonzero(self.origins + self.geometry.horizon <= cut)


class WindowBatches:
    """Shuffled batches of windows, a pure function of (seed, epoch, position)."""

    def __init__(self, examples: Windows, part: Any, size: int, seed: int):
        self.examples, self.part, self.seed = examples, part, seed
        self.size = min(size, len(part))
        self.per_epoch = max(1, len(part) // self.size)

    def batch(self, epoch: int, position: int) -> Batch:
        """The batch at one position of one epoch."""
        order = permutation(self.seed, epoch, len(self.part))
        chosen = self.part[order[position * self.size : (position + 1) * self.size]]
        windows = self.examples.take(chosen)
        batch = WindowBatch(windows.fields)
        object.__setattr__(batch, "examples", self.examples)
        object.__setattr__(batch, "part", self.part)
        return batch

    def stream(self, first: int, stop: int) -> Generator[Batch, None, None]:
        """Batches of steps `first` to `stop - 1`."""
        for step in range(first, stop):
            yield self.batch(*divmod(step, self.per_epoch))


def numbers(values: np.ndarray) -> list[float | None]:
    """Numbers with six digits, None for what is not finite."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]
