"""Models that are fitted in one step from all rows, without gradients."""

from typing import Any

import torch
from torch import nn

from wonderland.core import part
from wonderland.core.recipe import Recipe
from wonderland.train.learner import Learner
from wonderland.train.state import State


@part
class ClosedForm(Learner):
    """The model's own fit, `fit_rows(x, y, weight)`, in one step with a batch of all training rows.

    Numbers are given with mean 0 and deviation 1, unless the model has a scale of its own (`own_scale`).
    """

    def __init__(self, recipe: Recipe, task: Any):
        self.recipe, self.task = recipe, task

    def start(self, model: nn.Module) -> State:
        return State(model=model)

    def step(self, state: State, batch: Any) -> dict[str, float]:
        model: Any = state.model
        x, y = batch["x"], batch["y"]
        weight = batch["weight"] if "weight" in batch.fields else None
        scale: dict[str, float] = {}
        if self.task.classes is None:
            own = getattr(model, "own_scale", False)
            scale = {"mean": self.task.mean, "scale": self.task.scale} if own else {}
            y = y.double() if own else (y.double() - self.task.mean) / self.task.scale
        model.eval()
        model.fit_rows(x, y, weight, **scale)
        with torch.no_grad():
            return {"loss": float(self.task.loss(model, batch)[0])}

    def model(self, state: State) -> nn.Module:
        return state.model
