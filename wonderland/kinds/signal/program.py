"""Series with an answer as inputs of an exported model, and those that exports are tried on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.data.ports import Feed, Port, Preprocessing, Trial
from wonderland.kinds.signal.signals import Signals

COUNT = 20
BATCHES = (1, 7, COUNT)


class SignalProgram(Preprocessing):
    """From series in their own scale, float (rows, time, channels) with NaN after the end of each, to standardised ones."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: list[float], deviation: list[float]):
        about = "values in their own scale, NaN after the end of each series; gaps inside are to be filled in before"
        super().__init__((Port("series", "float", ("rows", "time", len(mean)), about=about),))
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation, dtype=torch.float64), persistent=False)

    def forward(self, *values: Tensor) -> Tensor:
        return ((values[0].double() - self.mean) / self.deviation).float()


def signal_trials(encoder: Any) -> Iterator[Trial]:
    """Series of three lengths, each with a length of its own: noise, waves, constants, steps and large values."""
    for seed, longest in enumerate((max(2, encoder.length // 3), encoder.length, 2 * encoder.length + 3)):
        values = odd_series(longest, np.array(encoder.mean), np.array(encoder.deviation), seed)
        source = Signals(values, name="series", origin={"memory": "series"}, channels=encoder.channels)
        feeds = [[series_feed(source.values[i : i + size]) for i in range(0, COUNT, size)] for size in BATCHES]
        yield Trial(source, feeds)


def odd_series(longest: int, mean: np.ndarray, deviation: np.ndarray, seed: int) -> list[np.ndarray]:
    """Series (t, channels) around a mean, of at most so many steps; the first is that long."""
    generator = np.random.default_rng(seed)
    series = []
    for row in range(COUNT):
        length = longest if row == 0 else int(generator.integers(max(1, longest // 2), longest + 1))
        t = np.arange(length)[:, None]
        values = generator.normal(size=(length, len(mean)))
        if row % 4 == 1:
            values = np.sin(t * generator.uniform(0.05, 1.5, len(mean)) + generator.uniform(0, 6, len(mean)))
        values = {5: 0 * values, 6: 0 * values + 3, 7: (t > length // 2) * 2.0 + 0 * values, 8: 1e4 * values}.get(
            row, values
        )
        series.append((mean + deviation * values).astype(np.float32))
    return series


def series_feed(values: list[np.ndarray]) -> Feed:
    """Series as one array, NaN after the end of each."""
    whole = np.full((len(values), max(map(len, values)), values[0].shape[1]), np.nan, np.float32)
    for row, value in zip(whole, values, strict=True):
        row[: len(value)] = value
    return {"series": whole}
