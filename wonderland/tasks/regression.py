"""Regression: a number, learned on a standard scale and predicted in its own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.tasks import metrics
from wonderland.tasks.answers import NumberAnswers
from wonderland.tasks.rows import LEVELS, RowTask, weighted_mean
from wonderland.tasks.trust import RowTrust, group_predictions
from wonderland.tasks.view import View
from wonderland.trust.conformal import check_level


@part
class Regression(RowTask):
    """Regression: the model predicts (y - mean) / scale, both from the training rows.

    Model outputs are (b, 1), or (m, b, 1) from an ensemble of m members. Predictions are kept within the training
    range of the target, widened by a tenth on each side.

    >>> task = Regression(mean=10.0, scale=2.0, low=6.0, high=14.0)
    >>> task.standard(np.array([12.0])).tolist()
    [1.0]
    """

    name = "regression"
    watch = "loss"
    outputs = 1

    def __init__(self, mean: float = 0.0, scale: float = 1.0, low: float = -3e38, high: float = 3e38):
        if not scale > 0:
            raise WonderlandError(f"The target's scale must be positive, not {scale}.")
        self.mean, self.scale = float(mean), float(scale)
        self.low, self.high = float(low), float(high)

    def arguments(self) -> dict[str, Any]:
        return {"mean": self.mean, "scale": self.scale, "low": self.low, "high": self.high}

    def model_arguments(self) -> dict[str, Any]:
        return {"outputs": 1, "classes": 1}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Squared error of the standardised target, averaged over examples and members."""
        predicted = model(batch["x"])[..., 0]
        target = ((batch["y"] - self.mean) / self.scale).to(torch.float32)
        target = target.to(predicted.dtype).expand(predicted.shape)
        if "weight" not in batch.fields:
            return F.mse_loss(predicted, target), float(len(batch))
        return weighted_mean(F.mse_loss(predicted, target, reduction="none"), batch["weight"]), float(len(batch))

    def combine(self, outputs: Tensor, shares: ndarray | None = None) -> Tensor:
        """Combine members (m, b, 1) into one prediction (b, 1): their mean, weighted by shares (m,)."""
        weights = np.full(len(outputs), 1 / len(outputs)) if shares is None else shares
        return (outputs.double() * torch.as_tensor(weights)[:, None, None]).sum(0)

    def errors(self, outputs: Tensor, y: ndarray) -> ndarray:
        """Each member's error of the standardised target: (m, n, 1)."""
        return outputs.double().numpy() - self.standard(y)[:, None]

    def scores(self, prediction: ndarray, y: ndarray, temperature: float) -> ndarray:
        return np.abs(y - self.original(prediction[:, 0]))

    def standard(self, y: ndarray) -> ndarray:
        """Standardise targets."""
        return (y - self.mean) / self.scale

    def original(self, outputs: ndarray) -> ndarray:
        """Outputs in the scale of the target, clipped to its range."""
        margin = 0.1 * (self.high - self.low)
        return (outputs * self.scale + self.mean).clip(self.low - margin, self.high + margin)

    def prediction_metrics(self, prediction: ndarray, y: ndarray, squared_error: float) -> dict[str, float]:
        return {"loss": squared_error, "rmse": self.metrics(self.original(prediction[:, 0]), y)["rmse"]}

    def metrics(self, predicted: ndarray, y: ndarray) -> dict[str, Any]:
        """MAE, RMSE and R2 in the scale of the target."""
        return {"mae": metrics.mae(y, predicted), "rmse": metrics.rmse(y, predicted), "r2": metrics.r2(y, predicted)}

    def values(self, outputs: Tensor, trust: RowTrust) -> ndarray:
        """Predictions in the scale of the target (n,), from members' outputs (m, n, 1)."""
        return self.original(self.combined(outputs, trust)[:, 0])

    def intervals(self, outputs: Tensor, trust: RowTrust, level: float | None = None) -> tuple[ndarray, ndarray]:
        """Conformal intervals: low and high ends (n,)."""
        groups = group_predictions(self, outputs, trust.groups, trust.shares)
        centres = np.stack([self.original(prediction[:, 0]) for prediction in groups])
        return trust.scores.intervals(centres, trust.level if level is None else level)

    def evaluate(self, view: View, trust: RowTrust, level: float | None = None) -> dict[str, Any]:
        return self.evaluate_outputs(view.outputs().cpu(), view.targets(), trust, level)

    def evaluate_outputs(
        self, outputs: Tensor, y: ndarray, trust: RowTrust, level: float | None = None
    ) -> dict[str, Any]:
        """`evaluate` for given outputs (m, n, 1)."""
        level = trust.level if level is None else check_level(level)
        values = self.values(outputs, trust)
        low, high = self.intervals(outputs, trust, level)
        return {
            "rows": len(y),
            "metrics": self.metrics(values, y),
            "conformal": {
                "level": level,
                "coverage": float(((low <= y) & (y <= high)).mean()),
                "mean_width": float(np.mean(high - low)) if np.isfinite(high - low).all() else None,
                "note": trust.scores.note(level),
            },
        }

    def predictions(self, view: View, trust: RowTrust, level: float | None = None) -> pd.DataFrame:
        """The predicted number and its interval."""
        outputs = view.outputs().cpu()
        low, high = self.intervals(outputs, trust, trust.level if level is None else check_level(level))
        return pd.DataFrame({"prediction": self.values(outputs, trust), "low": low, "high": high})

    def answers(self, trust: RowTrust, level: float) -> nn.Module | str:
        if getattr(trust, "options", None) is not None:
            return "Intervals that were asked for in fit are not written as a torch program."
        return NumberAnswers(self, trust, level)

    def difference(self, table: pd.DataFrame, exported: Mapping[str, Any]) -> float:
        """Of predictions and ends of intervals, in units of the standard deviation of the target."""
        largest = 0.0
        for name in ("prediction", "low", "high"):
            expected, found = table[name].to_numpy(), exported[name]
            same = expected == found  # infinite ends as well
            largest = max(largest, float(np.abs(np.where(same, 0.0, expected - found)).max(initial=0.0)))
        return largest / self.scale

    def row_scores(self, outputs: Tensor, y: Tensor, trust: RowTrust) -> Tensor:
        """Minus the absolute error of each row."""
        return -torch.as_tensor(np.abs(self.values(outputs, trust) - y.numpy()))

    score_name = "absolute error"

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss", True), ("rmse", "rmse", False)]

    def facts(self, view: View, trust: RowTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        """Intervals, predicted against true, and the largest errors."""
        outputs, y = view.outputs().cpu(), view.targets()
        values = self.values(outputs, trust)
        low, high = self.intervals(outputs, trust)
        drawn = np.linspace(0, len(y) - 1, min(len(y), 400)).astype(int)
        worst = np.argsort(-np.abs(values - y), kind="stable")[:12]

        def row(i: int) -> dict[str, Any]:
            ends = {"low": float(low[i]), "high": float(high[i])} if np.isfinite(high[i]) else {}
            return {"true": float(y[i]), "predicted": float(values[i])} | ends

        def coverage(level: float) -> float:
            below, above = self.intervals(outputs, trust, level)
            return float(((below <= y) & (y <= above)).mean())

        return {
            "answers": "regression",
            "values": True,
            "conformal": record["conformal"] | {
                "examples": [row(int(i)) for i in drawn],
                "levels": [{"level": level, "coverage": coverage(level)} for level in LEVELS],
            },
            "mistakes": [row(int(i)) | dataset.shown(int(view.part[i])) for i in worst.tolist()],
        }  # fmt: skip
