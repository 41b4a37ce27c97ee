"""Signals: many series of one or several channels, of one or many lengths, with an answer each."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.data.dataset import Dataset, Finding, counted
from wonderland.kinds.signal.drawing import drawn

CHANNELS_SHOWN = 6


class Signals(Dataset):
    """Series as arrays (t, channels), without gaps.

    >>> signals = Signals([np.zeros((5, 2)), np.ones((3, 2))], name="two", origin={})
    >>> len(signals), signals.lengths.tolist()
    (2, [5, 3])
    """

    kind = "signal"
    noun = "series"

    def __init__(
        self,
        values: Sequence[np.ndarray],
        *,
        name: str,
        origin: dict[str, Any],
        findings: Sequence[Finding] = (),
        names: list[str] | None = None,
        channels: list[str] | None = None,
    ):
        self.name, self.origin, self.findings = name, origin, list(findings)
        self.names = names or [str(place) for place in range(len(values))]
        count = values[0].shape[1] if len(values) else 1
        self.channels = channels or ([f"channel {i + 1}" for i in range(count)] if count > 1 else ["value"])
        self.values, filled, infinite = [], 0, 0
        for place, each in enumerate(values):
            whole = _trimmed(np.asarray(each, np.float32))
            if not len(whole):
                raise WonderlandError(
                    f"Series {self.names[place]!r} of {name} has no values. Remove it, or fill it in."
                )
            infinite += int(np.isinf(whole).sum())
            whole = np.where(np.isinf(whole), np.nan, whole)
            filled += int(np.isnan(whole).sum())
            self.values.append(_without_gaps(whole))
        if filled:
            text = f"{counted(filled, 'value is', 'values are')} missing or infinite; they are interpolated between their neighbours."
            self.findings.append(Finding("missing", name, filled, text))
        lengths = self.lengths
        if len(lengths) and lengths.min() != lengths.max():
            text = f"The series have {lengths.min():,} to {lengths.max():,} steps; models read each to its own end."
            self.findings.append(Finding("size", name, len(lengths), text))
        flat = sum(bool((value == value[0]).all()) for value in self.values)
        if flat and len(self.values) > 1:
            text = f"{counted(flat, 'series is', 'series are')} constant."
            self.findings.append(Finding("copies", name, flat, text))
        self.task = self.classes = self.y = None
        self.frame = pd.DataFrame(index=range(len(self.values)))
        self._digest()

    def _digest(self) -> None:
        total = hashlib.sha256(f"{self.channels}|".encode())
        for name, value in zip(self.names, self.values, strict=True):
            total.update(f"{name}|{value.shape}|".encode("utf-8", "backslashreplace") + value.tobytes())
        self.fingerprint = total.hexdigest()

    @property
    def lengths(self) -> np.ndarray:
        """The number of steps of each series (n,)."""
        return np.array([len(value) for value in self.values], np.int64)

    def __len__(self) -> int:
        return len(self.values)

    def labels(self) -> dict[str, list[Any]]:
        return {"series": list(self.names)}

    def columns(self) -> dict[str, np.ndarray]:
        return {str(name): self.frame[name].astype("string").fillna("").to_numpy(str) for name in self.frame.columns}

    def texts_of(self, name: str) -> np.ndarray:
        columns = self.columns()
        return columns[name] if name in columns else super().texts_of(name)

    def answer(self, i: int) -> Any:
        assert self.y is not None
        return float(self.y[i]) if self.classes is None else self.classes[self.y[i]]

    def example(self, i: int) -> dict[str, Any]:
        shown = {"series": self.names[i], "steps": len(self.values[i])}
        for column, channel in enumerate(self.channels[:CHANNELS_SHOWN]):
            shown[channel] = " ".join(f"{value:.4g}" for value in self.values[i][:8, column])
        return shown | ({} if self.y is None else {"target": self.answer(i)})

    def shown(self, i: int) -> dict[str, Any]:
        """A small drawing of the series, and its name."""
        return {"image": drawn(self.values[i]), "path": self.names[i]}

    def summary(self) -> list[dict[str, Any]]:
        lengths = self.lengths
        steps = f"{lengths[0]:,}" if lengths.min() == lengths.max() else f"{lengths.min():,} to {lengths.max():,}"
        about = {"steps": steps, "channels": len(self.channels)}
        if self.y is None:
            return [{"series": len(self)} | about]
        if self.classes is None:
            low, middle, high = np.quantile(self.y, (0, 0.5, 1))
            return [
                {"series": len(self), "lowest": f"{low:g}", "median": f"{middle:g}", "highest": f"{high:g}"} | about
            ]
        counts = np.bincount(self.y, minlength=len(self.classes))
        return [
            {"class": name, "series": int(count), "share": f"{100 * count / len(self):.1f} %"} | about
            for name, count in zip(self.classes, counts, strict=True)
        ]


def _trimmed(values: np.ndarray) -> np.ndarray:
    """A series without the steps at its end that no channel has a value for: padding of shorter series."""
    real = np.flatnonzero(~np.isnan(values).all(1))
    return values[: real[-1] + 1] if len(real) else values[:0]


def _without_gaps(values: np.ndarray) -> np.ndarray:
    """Missing values on the line between their neighbours, those at the ends like the nearest one, a channel without any at 0."""
    steps, whole = np.arange(len(values)), values.copy()
    for column in np.flatnonzero(np.isnan(values).any(0)):
        known = ~np.isnan(values[:, column])
        whole[:, column] = np.interp(steps, steps[known], values[known, column]) if known.any() else 0.0
    return np.ascontiguousarray(whole, np.float32)
