"""Predictions along each number of a table, all other columns held at a typical row."""

from dataclasses import replace
from typing import Any

import numpy as np

from wonderland.kinds.table.table import Table
from wonderland.tasks.view import View

PLACES = 60
CURVES = 6
POINTS = 300


def bands(run: Any, plan: Any, order: list[str]) -> list[dict[str, Any]]:
    """Curves with their bands for the first numbers in `order`; rows are drawn beside them where there is one column.

    Only for numbers predicted by a model that knows how sure it is of a row (`spread`).
    """
    options = run.trust.options
    if run.classes is not None or not hasattr(run.model, "spread") or (options is not None and options.group):
        return []
    table, train, encoder = plan.dataset, plan.parts.train, plan.encoder
    numbers = {encoding.name for encoding in encoder.encodings if encoding.kind == "number"}
    encoded = encoder.encode(table, train).numpy()[:, : len(encoder.numbers)]
    centre = np.median(encoded, 0) if encoded.shape[1] else np.zeros(0)
    typical = train[int(np.square(encoded - centre).sum(1).argmin())]
    curves = []
    for name in [name for name in order if name in numbers][:CURVES]:
        values = table.column(name).values[train]
        known = values[np.isfinite(values)]
        low, high = np.quantile(known, [0.01, 0.99]) if len(known) else (0.0, 0.0)
        if not high > low:
            continue
        margin = 0.1 * (high - low)
        places = np.linspace(low - margin, high + margin, PLACES)
        columns = [
            replace(c, values=places) if c.name == name else c.take(np.full(PLACES, typical)) for c in table.features
        ]
        along = Table(table.name, columns, target=table.target, task=table.task, classes=None, y=None)
        view = View(run.model, encoder.examples(along), np.arange(PLACES), run.recipe.ensemble, dataset=along)
        predictions = run.task.predictions(view, run.trust)
        curve: dict[str, Any] = {"name": name, "x": places.tolist()}
        for side in ("prediction", "low", "high"):
            curve[side] = [float(value) if np.isfinite(value) else None for value in predictions[side]]
        if len(table.features) == 1:
            shown = train[:: max(1, len(train) // POINTS)]
            curve["points"] = np.stack([table.column(name).values[shown], table.y[shown]], 1).tolist()
        curves.append(curve)
    return curves
