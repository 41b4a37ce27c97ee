"""Regression: a number, learned on a standard scale and told in its own."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError, part
from wonderland.tasks import metrics


@part
class Regression(Part):
    """A number: the model works on (y - mean) / scale, both taken from the training rows.

    Model outputs are (b, 1), or (m, b, 1) from an ensemble of m members. Predictions are kept within the training
    range of the target, widened by a tenth on each side.

    >>> task = Regression(mean=10.0, scale=2.0, low=6.0, high=14.0)
    >>> task.standard(np.array([12.0])).tolist()
    [1.0]
    """

    name = "regression"
    watch = "rmse"
    outputs = 1

    def __init__(self, mean: float = 0.0, scale: float = 1.0, low: float = -3e38, high: float = 3e38):
        if not scale > 0:
            raise WonderlandError(f"The target's scale must be positive, not {scale}.")
        self.mean, self.scale = float(mean), float(scale)
        self.low, self.high = float(low), float(high)

    def arguments(self) -> dict[str, Any]:
        """What it takes to build this task again."""
        return {"mean": self.mean, "scale": self.scale, "low": self.low, "high": self.high}

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Squared error on the standard scale, the mean over examples and members."""
        x, y = batch
        predicted = model(x)[..., 0]
        return F.mse_loss(predicted, y.to(predicted.dtype).expand(predicted.shape))

    def combine(self, outputs: Tensor, shares: ndarray | None = None) -> Tensor:
        """Members (m, b, 1) to one prediction (b, 1): their mean, weighted by shares (m,)."""
        weights = np.full(len(outputs), 1 / len(outputs)) if shares is None else shares
        return (outputs.double() * torch.as_tensor(weights)[:, None, None]).sum(0)

    def errors(self, outputs: Tensor, y: ndarray) -> ndarray:
        """Each member's error on the standard scale: (m, n, 1)."""
        return outputs.double().numpy() - self.standard(y)[:, None]

    def standard(self, y: ndarray) -> ndarray:
        """To the scale the model works on."""
        return (y - self.mean) / self.scale

    def original(self, outputs: ndarray) -> ndarray:
        """Back to the target's own scale, within its range."""
        margin = 0.1 * (self.high - self.low)
        return (outputs * self.scale + self.mean).clip(self.low - margin, self.high + margin)

    def metrics(self, predicted: ndarray, y: ndarray) -> dict[str, Any]:
        """MAE, RMSE and R2 in the target's own scale."""
        return {"mae": metrics.mae(y, predicted), "rmse": metrics.rmse(y, predicted), "r2": metrics.r2(y, predicted)}
