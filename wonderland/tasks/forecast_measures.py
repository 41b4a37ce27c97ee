"""Measures of forecasts, added up over batches of windows."""

import numpy as np
from numpy import ndarray

QUANTILES = np.arange(1, 20) / 20


class Measures:
    r"""Sums over windows of the errors of forecasts, from which measures follow.

    MASE is the mean of :math:`|y - \hat y| / d`, with d the mean absolute change from season to season of the series in the training
    part. sMAPE is :math:`200\,|y - \hat y| / (|y| + |\hat y|)`, in percent. Pinball is the mean pinball loss at the levels 0.05, 0.1, ...,
    0.95, and CRPS twice that, which is its integral by the sum of those levels. Unknown values (NaN) count nowhere.
    """

    def __init__(self, horizon: int, channels: int):
        shape = (horizon, channels)
        self.count, self.absolute, self.squared, self.relative = (np.zeros(shape) for _ in range(4))
        self.scaled, self.scaled_count, self.standard, self.standard_absolute = (np.zeros(shape) for _ in range(4))
        self.pinball, self.inside, self.width = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def add(self, truth: ndarray, forecast: ndarray, naive: ndarray, scale: ndarray) -> None:
        """Truth and forecast (n, h, c); change from season to season and scale of each series (n, c)."""
        known = np.isfinite(truth)
        error = np.where(known, truth - forecast, 0)
        size = np.abs(error)
        self.count += known.sum(0)
        self.absolute += size.sum(0)
        self.squared += (error**2).sum(0)
        total = np.where(known, np.abs(truth) + np.abs(forecast), 0)
        self.relative += (200 * size / np.where(total > 0, total, 1)).sum(0)
        usable = known & (naive > 0)[:, None]
        self.scaled += (np.where(usable, size, 0) / np.where(naive > 0, naive, 1)[:, None]).sum(0)
        self.scaled_count += usable.sum(0)
        self.standard += ((error / scale[:, None]) ** 2).sum(0)
        self.standard_absolute += (size / scale[:, None]).sum(0)

    def add_quantiles(self, truth: ndarray, quantiles: ndarray) -> None:
        """Predicted quantiles (levels, n, h, c)."""
        gap = np.where(np.isfinite(truth), truth - quantiles, 0)
        levels = QUANTILES[:, None, None, None]
        self.pinball += np.maximum(levels * gap, (levels - 1) * gap).mean(0).sum(0)

    def add_intervals(self, truth: ndarray, low: ndarray, high: ndarray) -> None:
        """Ends of intervals (n, h, c)."""
        known = np.isfinite(truth)
        self.inside += (known & (low <= truth) & (truth <= high)).sum(0)
        self.width += np.where(known, high - low, 0).sum(0)

    def mean(self, sums: ndarray, count: ndarray | None = None) -> float | None:
        """A sum over everything, divided by how much was known; None where nothing was."""
        total = float((self.count if count is None else count).sum())
        value = float(sums.sum()) / total if total else None
        return value if value is None or np.isfinite(value) else None

    def of_point(self) -> dict[str, float | None]:
        """Measures of point forecasts."""
        squared = self.mean(self.squared)
        return {
            "mae": self.mean(self.absolute),
            "rmse": None if squared is None else float(np.sqrt(squared)),
            "mase": self.mean(self.scaled, self.scaled_count),
            "smape": self.mean(self.relative),
        }

    def of_distribution(self) -> dict[str, float | None]:
        """Measures of quantiles."""
        pinball = self.mean(self.pinball)
        return {"crps": None if pinball is None else 2 * pinball, "pinball": pinball}

    def by_step(self, sums: ndarray) -> list[float | None]:
        """A measure for each step of the horizon."""
        counts = self.count.sum(1)
        return [float(total / count) if count else None for total, count in zip(sums.sum(1), counts, strict=True)]
