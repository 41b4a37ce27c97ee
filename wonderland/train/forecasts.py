"""FitForecasts: a learner that fits one forecast of a blend in each step, and weighs them by their validation errors."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.core.recipe import Recipe
from wonderland.models.series.blend import shares_of
from wonderland.train.learner import Learner
from wonderland.train.state import State

ROWS, VALIDATION = 60_000, 600  # windows times columns for one fit, and for a choice


@part
class FitForecasts(Learner):
    """Step i fits forecast i of a `ForecastBlend` to the windows before each of its four periods ends; no gradients are needed.

    Every step ends with new weights of all forecasts that are fitted, so training may stop anywhere.
    """

    def __init__(self, recipe: Recipe, task: Any):
        self.recipe, self.task = recipe, task

    def start(self, model: nn.Module) -> State:
        return State(model=model)

    def step(self, state: State, batch: Any) -> dict[str, float]:
        model, examples = state.model, batch.examples
        geometry = examples.geometry
        inside = (examples.origins >= geometry.cuts[0]) & (examples.origins + geometry.horizon <= geometry.cuts[1])
        validation = windows_of(examples, np.flatnonzero(inside), VALIDATION)

        def windows(period: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            return windows_of(examples, examples.before(geometry.cuts[period]), ROWS)

        if state.step < len(model.forecasts):
            model.fit(model.forecasts[state.step], windows, validation)
        fitted = model.forecasts[: state.step + 1]
        x, y, mask, about = validation
        with torch.no_grad():
            made = torch.stack([model.one(name, x, about) for name in fitted], 1)
            errors = torch.where(mask[:, None], made - y[:, None], 0.0).flatten(2)
            shares = shares_of(errors, geometry.horizon)
            model.shares.zero_()
            model.shares[: len(fitted)] = shares.to(model.shares.dtype)
            loss = (errors * shares.to(errors.dtype)[None, :, None]).sum(1).square().sum() / mask.sum().clamp_min(1)
        return {"loss": float(loss)}

    def model(self, state: State) -> nn.Module:
        return state.model


def windows_of(examples: Any, rows: np.ndarray, most: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, y, mask and about of windows, evenly chosen where there are more than fit into so many rows of one column."""
    limit = max(64, most // examples.truth.shape[1])
    if len(rows) > limit:
        rows = rows[np.linspace(0, len(rows) - 1, limit).astype(np.int64)]
    batch = examples.take(rows)
    return batch["x"], batch["y"], batch["mask"], batch["about"]
