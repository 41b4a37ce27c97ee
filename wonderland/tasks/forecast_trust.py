"""Conformal intervals of forecasts for each step of the horizon, from the errors of calibration windows."""

import math
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.tasks.task import Trust
from wonderland.trust.conformal import check_level

UNITS = ("scale", "changes", "level")  # what errors are measured in, beside the scale of their series
KEPT = 200  # order statistics that are kept for each step
FEW = 40  # windows; with fewer, or few that share no step, all steps share their errors, relative to the usual size of each step's


class ForecastTrust(Trust):
    r"""Errors of calibration windows in the unit of each forecast, sorted: for each step and column, or for all steps together.

    .. math:: C(x) = \hat y_h \pm u_h\, q_h, \qquad q_h = \text{the } \lceil (n+1)\,\text{level} \rceil \text{-th smallest of } |y_h - \hat y_h| / u_h

    `errors` (s, c, m) are signed; s is the horizon, or 1 where steps are pooled, m at most 200 order statistics of n errors.
    `profile` (horizon, c) is the usual size of the errors of each step (1 where steps are not pooled). `first` (c, k) are the sizes of
    errors one step ahead. The `unit` is that of the series, how much the context changes, or its level. Papers: Papadopoulos et al., 2002; Stankeviciute et al., 2021 (one quantile for each step).
    """

    def __init__(self, errors: ndarray, profile: ndarray, first: ndarray, level: float, unit: str = "scale"):
        self.errors, self.profile, self.first, self.level = errors, profile, np.sort(first, 1), check_level(level)
        self.unit = unit
        self.sizes = np.sort(np.abs(errors), -1)

    @staticmethod
    def of(errors: ndarray, level: float, unit: str = "scale") -> "ForecastTrust":
        """From errors (n, horizon, c) in the unit of each forecast, NaN where the truth is unknown."""
        check_level(level)
        n, horizon, channels = errors.shape
        first = [sorted_known(np.abs(errors[:, 0, c]))[-5000:] for c in range(channels)]
        least = max(1, min(map(len, first)))
        one = np.stack([order_statistics(part, least) if len(part) else np.full(1, np.inf) for part in first])
        if n < max(FEW, 3 * horizon):
            profile = usual_sizes(errors)
            pooled = (errors / profile).transpose(2, 0, 1).reshape(channels, -1)
            return ForecastTrust(stacked([list(pooled)]), profile, one, level, unit)
        return ForecastTrust(
            stacked([[errors[:, h, c] for c in range(channels)] for h in range(horizon)]),
            np.ones((horizon, channels)),
            one,
            level,
            unit,
        )

    def radius(self, level: float) -> ndarray:
        """Half the width of intervals, in the unit of each forecast: (horizon, c); infinite where there are too few errors."""
        kept = self.sizes.shape[-1]
        rank = math.ceil(check_level(level) * (kept + 1) - 1e-9)
        if rank > kept:
            return np.full(self.profile.shape, np.inf)
        return self.sizes[:, :, rank - 1] * self.profile

    def quantiles(self, levels: ndarray) -> ndarray:
        """Quantiles of errors: (levels, horizon, c)."""
        return np.quantile(self.errors, levels, axis=-1) * self.profile

    def unusual(self, sizes: ndarray, channel: int) -> ndarray:
        """The share of ordinary errors one step ahead that are at least this large, as a p-value: (n,)."""
        known = self.first[channel]
        return (1 + len(known) - np.searchsorted(known, sizes, side="left")) / (1 + len(known))

    def to_json(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "unit": self.unit,
            "errors": rounded(self.errors),
            "profile": rounded(self.profile),
            "first": rounded(self.first),
        }

    @staticmethod
    def from_json(saved: Any, horizon: int, channels: int) -> "ForecastTrust":
        """Read back from `to_json`; damaged content is refused."""
        try:
            level = check_level(saved["level"])
            errors, profile, first = (np.array(saved[name], np.float64) for name in ("errors", "profile", "first"))
            fine = (
                errors.ndim == 3
                and errors.shape[0] in (1, horizon)
                and errors.shape[1] == channels
                and errors.shape[2] >= 1
            )
            fine = fine and profile.shape == (horizon, channels) and first.ndim == 2 and len(first) == channels
            if (
                not fine
                or not all(np.isfinite(part).all() for part in (errors, profile, first))
                or (profile <= 0).any()
            ):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WonderlandError("trust.json does not hold errors of forecasts: it is damaged or not ours.") from error
        return ForecastTrust(errors, profile, first, level, saved["unit"])


def sorted_known(errors: ndarray) -> ndarray:
    """Finite values, sorted."""
    return np.sort(errors[np.isfinite(errors)])


def order_statistics(values: ndarray, most: int = KEPT) -> ndarray:
    """At most so many of sorted values, at even ranks, the largest among them, so that quantiles are not too small."""
    if len(values) <= most:
        return values
    ranks = np.ceil(np.arange(1, most + 1) * (len(values) + 1) / (most + 1)).astype(np.int64)
    return values[np.minimum(ranks, len(values)) - 1]


def stacked(rows: list[list[ndarray]]) -> ndarray:
    """Sorted errors of steps and columns in one array, each with as many order statistics as the fewest."""
    known = [[sorted_known(values) for values in row] for row in rows]
    least = min(KEPT, min(len(values) for row in known for values in row))
    if least == 0:
        raise WonderlandError(
            "The calibration part has a step without any known value, so no interval can be given: give longer series."
        )
    return np.array([[order_statistics(values, least) for values in row] for row in known])


def usual_sizes(errors: ndarray) -> ndarray:
    """The root mean square of errors at each step, smoothed along the horizon, and never falling: (horizon, c)."""
    known = np.isfinite(errors)
    squares = np.where(known, errors, 0) ** 2
    horizon = errors.shape[1]
    width = max(1, horizon // 4)
    sums, counts = squares.sum(0), known.sum(0)
    cut = [slice(max(0, h - width), h + width + 1) for h in range(horizon)]
    sizes = np.stack([np.sqrt(sums[part].sum(0) / np.maximum(counts[part].sum(0), 1)) for part in cut])
    sizes = np.maximum.accumulate(sizes, 0)
    return np.where(sizes > 0, sizes, 1.0)


def rounded(values: ndarray) -> Any:
    """Nested lists of numbers with nine digits."""
    return np.vectorize(lambda value: float(f"{value:.9g}"), otypes=[np.float64])(values).tolist()
