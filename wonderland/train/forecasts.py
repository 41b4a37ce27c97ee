"""FitForecasts: a learner that fits one forecast of a blend in each step, and weighs them by their validation errors."""

from typing import Any

import numpy as np
import torch
from torch import nn

from wonderland.core import part
from wonderland.core.recipe import Recipe
from wonderland.models.series.blend import PERIODS, Windows, shares_of
from wonderland.train.learner import Learner
from wonderland.train.state import State

ROWS, CHOICE = 60_000, 600  # windows times columns for one fit, and for a choice


@part
class FitForecasts(Learner):
    """Step i fits forecast i of a `ForecastBlend` to the windows before each of its four periods ends; no gradients are needed.

    Every step ends with new shares of all forecasts that are fitted, so training may stop anywhere. The shares of a period come from
    errors on validation windows, and on those of the parts that lie before it; each error is that of weights fitted before its window.
    """

    def __init__(self, recipe: Recipe, task: Any):
        self.recipe, self.task = recipe, task

    def start(self, model: nn.Module) -> State:
        return State(model=model)

    def step(self, state: State, batch: Any) -> dict[str, float]:
        model, examples = state.model, batch.examples
        geometry = examples.geometry
        parts = [part_of(examples, *geometry.cuts[first : first + 2]) for first in range(3)]

        def windows(period: int) -> Windows:
            return windows_of(examples, examples.before(geometry.cuts[period]), ROWS)

        if state.step == 0:
            model.fit_effects(windows, parts[0])
        if state.step < len(model.forecasts):
            model.fit(model.forecasts[state.step], windows, parts[0])
        fitted = model.forecasts[: state.step + 1]
        errors = []
        with torch.no_grad():
            for x, y, mask, about, known in parts:
                forecasts = torch.stack([model.one(name, x, about, known) for name in fitted], 1)
                errors.append(torch.where(mask[:, None], forecasts - y[:, None], 0.0).flatten(2))
            model.shares.zero_()
            for period in range(PERIODS):
                shares = shares_of(torch.cat(errors[: max(1, period)]), geometry.horizon)
                model.shares[period, : len(fitted)] = shares.to(model.shares.dtype)
            weights = model.shares[0, : len(fitted)].to(errors[0].dtype)
            loss = (errors[0] * weights[None, :, None]).sum(1).square().sum() / parts[0][2].sum().clamp_min(1)
        return {"loss": float(loss)}

    def model(self, state: State) -> nn.Module:
        return state.model


def part_of(examples: Any, first: int, last: int) -> Windows:
    """Windows whose targets lie between two places."""
    inside = (examples.origins >= first) & (examples.origins + examples.geometry.horizon <= last)
    return windows_of(examples, np.flatnonzero(inside), CHOICE)


def windows_of(examples: Any, rows: np.ndarray, most: int) -> Windows:
    """x, y, mask, about and known of windows, evenly chosen where there are more than fit into so many rows of one column."""
    limit = max(64, most // examples.truth.shape[1])
    if len(rows) > limit:
        rows = rows[np.linspace(0, len(rows) - 1, limit).astype(np.int64)]
    batch = examples.take(rows)
    return batch["x"], batch["y"], batch["mask"], batch["about"], batch["known"]
