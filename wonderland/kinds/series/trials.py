"""What an exported forecaster is tried on: the steps after each series, and made up series with gaps."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from wonderland.data.ports import Feed, Trial
from wonderland.kinds.series.grid import filled
from wonderland.kinds.series.panel import Panel

BATCHES = (1, 3, 100)
SIZES = (1e-6, 1.0, 1e6, 1e3, 0.0)  # of made up series
GAPS = (0.0, 0.2, 0.5, 0.0, 0.0)


def series_trials(encoder: Any) -> Iterator[Trial]:
    """The series of the run after their last stored step, and new ones of a context's length."""
    yield Trial.of_rows(None, series_feed(encoder, encoder.open_stored()), BATCHES)
    source = made_up(encoder)
    if source is not None:
        yield Trial.of_rows(source, series_feed(encoder, encoder.open(source)), BATCHES)


def series_feed(encoder: Any, panel: Any) -> Feed:
    """The arrays of the steps after the last one of each series.

    Holes are filled in series that are longer than a context, where the season before a hole may lie further back.
    """
    layout, geometry, tracks = encoder.layout, encoder.geometry, panel.tracks
    context, along = geometry.context, geometry.context + geometry.horizon
    values = np.full((len(tracks), context, len(layout.targets)), np.nan)
    covariates = np.full((len(tracks), along, len(layout.covariates)), np.nan)
    times = np.zeros((len(tracks), along), np.int64)
    for row, track in enumerate(tracks):
        whole = filled(track.values, layout.season) if len(track.values) > context else track.values
        last = whole[-context:]
        values[row, context - len(last) :] = last
        places = track.stop - context + np.arange(along)
        if layout.frequency.dated:
            times[row] = np.rint(layout.frequency.stamps(places)).astype(np.int64)
        if layout.covariates:
            local = np.clip(places - track.start, 0, max(0, len(track.covariates) - 1))
            covariates[row] = unscaled_covariates(encoder, track)[local]
    feed = {"context": values}
    feed |= {"times": times} if layout.frequency.dated else {}
    feed |= {"covariates": covariates} if layout.covariates else {}
    return feed | ({"series": np.array([track.name for track in tracks], object)} if layout.series is not None else {})


def unscaled_covariates(encoder: Any, track: Any) -> np.ndarray:
    """The covariates of a series in their own scale, without holes."""
    panel = Panel([track], encoder.layout, name=track.name, origin={}, findings=[])
    mean, scale = (encoder.saved[name].numpy() for name in ("covariate_mean", "covariate_scale"))
    return encoder.scaled_covariates(panel)[0] * scale + mean


def made_up(encoder: Any) -> pd.DataFrame | None:
    """New series in long form; None where there is one series, or columns beside the targets."""
    layout, geometry = encoder.layout, encoder.geometry
    if layout.series is None or layout.covariates:
        return None
    generator, tables = np.random.default_rng(0), []
    times = layout.frequency.texts(np.arange(geometry.cuts[3], geometry.cuts[3] + geometry.context))
    for i, (size, gaps) in enumerate(zip(SIZES, GAPS, strict=True)):
        table: dict[str, Any] = {layout.time: times, layout.series: f"made up {i}"}
        for target in layout.targets:
            values = 5.0 + size * generator.normal(size=len(times))
            inner = generator.random(len(times)) < gaps
            inner[[0, -1]] = False
            table[target] = np.where(inner, np.nan, values)
        tables.append(pd.DataFrame(table))
    return pd.concat(tables, ignore_index=True)
