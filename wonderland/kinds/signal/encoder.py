"""From series to one tensor: channels standardised by the training part, NaN after the end of each series."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.data.columns import read_column
from wonderland.data.dataset import TASKS, Dataset, Finding
from wonderland.data.encoder import Field, RowEncoder
from wonderland.data.ports import Preprocessing, Trial
from wonderland.data.source import Glimpse
from wonderland.data.target import read_target
from wonderland.kinds.signal.opening import Read, read_signals
from wonderland.kinds.signal.options import Options
from wonderland.kinds.signal.program import SignalProgram, signal_trials
from wonderland.kinds.signal.signals import Signals

MOST_IN_MEMORY = 1 << 30


@dataclass
class SignalEncoder(RowEncoder):
    """What was learned from the training series: mean and deviation of each channel, and the longest length.

    `encode` gives (n, t, channels), as long as the longest series of the data, with NaN after the end of each.
    """

    channels: list[str]
    mean: list[float]
    deviation: list[float]
    length: int
    classes: list[str] | None = None
    task: str | None = None
    columns: dict[str, str | None] = field(default_factory=dict)
    noticed: list[Finding] = field(default_factory=list, compare=False)

    kind = "signal"

    @classmethod
    def fit(cls, dataset: Signals, rows: np.ndarray) -> "SignalEncoder":
        values = [dataset.values[row] for row in rows]
        count = sum(map(len, values))
        mean = np.sum([value.sum(0, dtype=np.float64) for value in values], 0) / count
        squares = np.sum([np.square(value - mean).sum(0, dtype=np.float64) for value in values], 0) / count
        deviation = np.sqrt(squares)
        deviation = np.where(deviation > 1e-12 * np.maximum(1, np.abs(mean)), deviation, 1.0)
        options = dataset.options or Options()
        columns = {name: getattr(options, name) for name in ("series", "time", "target", "group")}
        longest = max(2, max(map(len, values)))
        return cls(dataset.channels, mean.tolist(), deviation.tolist(), longest, dataset.classes, dataset.task, columns)

    def arguments(self) -> dict[str, Any]:
        """For models of signals: the channels of a step and the largest number of steps."""
        return {"channels": len(self.channels), "length": self.length}

    def in_memory(self, dataset: Any) -> bool:
        return len(dataset) * int(dataset.lengths.max(initial=1)) * len(self.channels) * 4 <= MOST_IN_MEMORY

    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        if not isinstance(dataset, Signals):
            name = dataset.name if isinstance(dataset, Dataset) else "the data"
            raise WonderlandError(f"This model reads series, and {name} is not made of series.")
        if len(dataset.channels) != len(self.channels):
            raise WonderlandError(
                f"This model reads series of {len(self.channels)} channels, and those of {dataset.name} have {len(dataset.channels)}."
            )
        self.noticed = []
        rows = np.arange(len(dataset)) if rows is None else np.asarray(rows, np.int64)
        longest = max(self.length, int(dataset.lengths.max(initial=1)))
        encoded = np.full((len(rows), longest, len(self.channels)), np.nan, np.float32)
        mean, deviation = np.array(self.mean), np.array(self.deviation)
        for place, row in enumerate(rows):
            value = dataset.values[row]
            encoded[place, : len(value)] = (value - mean) / deviation
        return torch.from_numpy(encoded)

    def schema(self) -> list[Field]:
        return [Field("series", "series", shape=(None, len(self.channels)))]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> Signals:
        """Series given as texts of numbers, "1, 2, 3", with a colon between channels."""
        values = []
        for row in rows:
            try:
                pieces = [
                    np.array([float(cell) for cell in piece.split(",")], np.float32)
                    for piece in str(row["series"]).split(":")
                ]
                values.append(np.stack(pieces, 1))
            except ValueError as error:
                raise WonderlandError(
                    "A series is written as numbers with commas, and a colon between channels of equal length."
                ) from error
        return Signals(values, name="series", origin={"memory": "series"})

    trial_words = "series of three lengths, in batches of 1, 7 and 20"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return SignalProgram(self.mean, self.deviation)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return signal_trials(self)

    def traits(self, dataset: Signals, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Length, and mean and deviation of the first channels."""
        table = [[len(v), *v.mean(0)[:4], *v.std(0)[:4]] for v in (dataset.values[row] for row in rows)]
        names = [
            *(f"mean of {name}" for name in self.channels[:4]),
            *(f"deviation of {name}" for name in self.channels[:4]),
        ]
        return dict(zip(["steps", *names], np.array(table, np.float64).T, strict=True))

    def open(self, source: Any, *, need_target: bool = False) -> Signals:
        if isinstance(source, Signals):
            return source
        options = Options(**self.columns)  # pyright: ignore[reportArgumentType]
        glimpse = source if isinstance(source, Glimpse) else Glimpse(source)
        return self.answered(read_signals(glimpse, options, need_target=need_target), glimpse.name, need_target)

    def answered(self, read: Read, name: str, need_target: bool) -> Signals:
        """Series that were read, with their answers in the classes of this model."""
        signals = Signals(
            read.values, name=name, origin={}, findings=read.findings, names=read.names, channels=read.channels
        )
        if read.frame is not None:
            signals.frame = read.frame
        if read.answers is None:
            if need_target:
                raise WonderlandError(f"{name} has no answers to compare with.")
            return signals
        signals.classes, signals.task = self.classes, self.task
        if self.classes is None:
            values = np.array(pd.to_numeric(read.answers, errors="coerce"), np.float64)
            if np.isnan(values).any():
                raise WonderlandError("This model predicts values: the targets to compare with must be finite numbers.")
            signals.y = values
            return signals
        texts = class_names(read.answers)
        for text in texts:
            if text not in self.classes:
                raise WonderlandError(
                    f"{name} has the class {text!r}, which this model does not know.{nearest(text, self.classes)}"
                )
        signals.y = np.array([self.classes.index(text) for text in texts], np.int64)
        return signals

    def to_json(self) -> dict[str, Any]:
        names = ("channels", "mean", "deviation", "length", "classes", "task", "columns")
        return {"kind": self.kind} | {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, saved: Any) -> "SignalEncoder":
        """Read what `to_json` gave; content that cannot be right is refused in a sentence."""
        if not isinstance(saved, dict) or saved.get("kind") != cls.kind:
            raise WonderlandError(
                "The preprocessing of this model is not for signals: the file is damaged or not ours."
            )
        checks = {
            "channels": lambda v: _texts(v) and 1 <= len(v) <= 100_000,
            "mean": lambda v: _numbers(v, len(saved["channels"])),
            "deviation": lambda v: _numbers(v, len(saved["channels"])) and min(v) > 0,
            "length": lambda v: isinstance(v, int) and not isinstance(v, bool) and 2 <= v <= 1 << 28,
            "classes": lambda v: v is None or (_texts(v) and 2 <= len(v) == len(set(v)) <= 100_000),
            "task": lambda v: v is None or v in TASKS,
            "columns": lambda v: isinstance(v, dict) and set(v) <= {"series", "time", "target", "group"} and all(
                c is None or isinstance(c, str) for c in v.values()
            ),
        }  # fmt: skip
        for name, check in checks.items():
            if name not in saved or not check(saved[name]):
                shown = repr(saved.get(name))[:60]
                raise WonderlandError(
                    f"The preprocessing of this model has {name} = {shown}, which cannot be: the file is damaged or not ours."
                )
        return cls(**{name: saved[name] for name in checks})


def class_names(answers: pd.Series) -> list[str]:
    """The class of each answer, written as the classes of the training part are."""
    column = read_column(str(answers.name), answers)
    _, _, classes, rows = (
        read_target(column, "multiclass" if column.distinct > 1 else None, [])
        if column.distinct > 1
        else (0, 0, None, [])
    )
    if classes is None or len(rows) < len(answers):
        return [str(cell) for cell in answers]
    codes = read_target(column, "multiclass", [])[0]
    return [classes[code] for code in codes]


def _numbers(values: Any, count: int) -> bool:
    fits = isinstance(values, list) and len(values) == count
    return fits and all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e300 for v in values)


def _texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
