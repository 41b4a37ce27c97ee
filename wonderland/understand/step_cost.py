"""Time and memory of a training step, predicted from steps on parts of a batch."""

import contextlib
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from wonderland.core.memory import peak_megabytes

MIB = 1 << 20
SHARES = (8, 4, 2)  # a step is tried on an eighth, a quarter and half of a batch
LARGE = 64  # rows from which parts of a batch say enough


@dataclass(frozen=True)
class StepCost:
    """Seconds of a step with the whole batch, and the peak of resident bytes of a process that takes such steps."""

    seconds: float
    peak_bytes: float
    rows: int
    tried: tuple[int, ...]


def clock() -> float:
    """Seconds: of the processor with one thread, so that other processes do not count; of the wall with several."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def step_cost(
    step: Callable[[Any], Any], parts: Sequence[tuple[int, Any]], rows: int, *, seconds: float = 2.0
) -> StepCost:
    r"""Time steps on parts of a batch, the smallest first, and continue the line to the whole batch.

    .. math:: t(b) \approx t_0 + t_1 b, \qquad m(b) \approx m_0 + m_1 b

    `parts` are pairs of a number of rows and what `step` takes. Each is repeated for a share of `seconds`, at least three times; the first call
    is a warm-up. The whole batch is never run unless it is the only part.
    """
    sizes, times, peaks = [], [], []
    for size, part in parts:
        step(part)
        reset_peak()
        durations, end = [], time.perf_counter() + seconds / len(parts)
        while len(durations) < 3 or (time.perf_counter() < end and len(durations) < 200):
            began = clock()
            step(part)
            durations.append(clock() - began)
        sizes.append(size)
        times.append(median(durations))
        peaks.append(peak_bytes())
    return StepCost(_continued(sizes, times, rows), _continued(sizes, peaks, rows), rows, tuple(sizes))


def parts_of(batch: Any) -> list[tuple[int, Any]]:
    """Parts of a `Batch` to try a step on: an eighth, a quarter and half of its rows; all of it where there are few or it is one piece."""
    rows = len(batch)
    if batch.axis is None or rows < LARGE:
        return [(rows, batch)]
    parts = []
    for share in SHARES:
        part = batch.split(share)[0]
        parts.append((len(part), part))
    return parts


def _continued(sizes: Sequence[float], values: Sequence[float], size: float) -> float:
    """The line through values at sizes, by least squares with the largest counted most, at another size; never below what was seen."""
    if len(set(sizes)) < 2:
        return float(values[-1])
    x, y = np.asarray(sizes, float), np.asarray(values, float)
    slope, start = np.polyfit(x, y, 1, w=np.sqrt(x))
    return float(max(y.max(), start + max(slope, 0.0) * size))


def reset_peak() -> None:
    """Begin to count the peak of resident memory anew, where the system can."""
    gc.collect()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> float:
    """The peak of resident memory since it was reset."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return float(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return peak_megabytes() * MIB
