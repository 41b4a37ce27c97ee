"""Answers of an exported forecaster: forecasts and conformal intervals for each step of the horizon, in the scale of the data."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.tasks.forecast_units import unit_tensor


class ForecastAnswers(nn.Module):
    """Outputs of a model as what `Forecast.predictions` computes, at one level: (rows, horizon, columns) each."""

    names = ("prediction", "low", "high")
    classes = None
    reads_inputs = True
    radius: Tensor

    def __init__(self, task: Any, trust: Any, level: float):
        super().__init__()
        self.task, self.unit = task, trust.unit
        self.register_buffer("radius", torch.as_tensor(trust.radius(level)), persistent=False)

    def forward(self, outputs: Tensor, x: Tensor, known: Tensor, about: Tensor) -> tuple[Tensor, ...]:
        outputs = outputs[..., None] if outputs.dim() == 3 else outputs
        forecasts, spread = self.task.located(outputs, about)
        half = spread * unit_tensor(self.unit, x, about, self.task.season, self.task.channels) * self.radius
        return forecasts, forecasts - half, forecasts + half
