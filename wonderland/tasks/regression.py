"""Regression: a number, learned on a standard scale and predicted in its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from wonderland.tasks.coverage import by_group, covered
from wonderland.tasks.number_trust import NumberOptions, cells_of
from wonderland.tasks.rows import LEVELS, RowTask, weighted_mean
from wonderland.tasks.trust import RowTrust, group_predictions, holdout_prediction
from wonderland.tasks.view import View
from wonderland.tasks.wanted import Wanted
from wonderland.trust.conformal import check_level
from wonderland.trust.uncertainty import number_uncertainty


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
    trust_options = ("conformal", "uncertainty")
    conformal_methods = ("split", "cross", "group", "cqr")

    def __init__(
        self,
        mean: float = 0.0,
        scale: float = 1.0,
        low: float = -3e38,
        high: float = 3e38,
        quantiles: Sequence[float] | None = None,
    ):
        if not scale > 0:
            raise WonderlandError(f"The target's scale must be positive, not {scale}.")
        self.mean, self.scale = float(mean), float(scale)
        self.low, self.high = float(low), float(high)
        if quantiles is not None and not (len(quantiles) == 2 and 0 < quantiles[0] < quantiles[1] < 1):
            raise WonderlandError(f"quantiles are two shares, the lower first, such as [0.05, 0.95], not {quantiles}.")
        self.quantiles = None if quantiles is None else [float(share) for share in quantiles]
        self.outputs = 1 if quantiles is None else 3

    def arguments(self) -> dict[str, Any]:
        own = {"mean": self.mean, "scale": self.scale, "low": self.low, "high": self.high}
        return own if self.quantiles is None else own | {"quantiles": self.quantiles}

    def model_arguments(self) -> dict[str, Any]:
        return {"outputs": self.outputs, "classes": self.outputs}

    def for_wanted(self, wanted: Wanted) -> "Regression":
        """The task with two quantiles as further outputs, where conformalised quantile regression was asked for."""
        if wanted.method != "cqr":
            return self
        quantiles = [(1 - wanted.level) / 2, (1 + wanted.level) / 2]
        return Regression(self.mean, self.scale, self.low, self.high, quantiles)

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Squared error of the standardised target, averaged over examples and members."""
        outputs = model(batch["x"])
        predicted = outputs[..., 0]
        target = ((batch["y"] - self.mean) / self.scale).to(torch.float32)
        target = target.to(predicted.dtype).expand(predicted.shape)
        loss = F.mse_loss(predicted, target, reduction="none")
        for place, share in enumerate(self.quantiles or (), 1):
            gap = target - outputs[..., place]
            loss = loss + torch.maximum(share * gap, (share - 1) * gap)
        mean = weighted_mean(loss, batch["weight"]) if "weight" in batch.fields else loss.mean()
        return mean, float(len(batch))

    def combine(self, outputs: Tensor, shares: ndarray | None = None) -> Tensor:
        """Combine members (m, b, 1) into one prediction (b, 1): their mean, weighted by shares (m,)."""
        weights = np.full(len(outputs), 1 / len(outputs)) if shares is None else shares
        return (outputs.double() * torch.as_tensor(weights)[:, None, None]).sum(0)

    def errors(self, outputs: Tensor, y: ndarray) -> ndarray:
        """Each member's error of the standardised target: (m, n, 1)."""
        return outputs[..., :1].double().numpy() - self.standard(y)[:, None]

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

    def plain_metrics(self, prediction: ndarray, y: ndarray) -> dict[str, Any]:
        return self.metrics(self.original(prediction[:, 0]), y)

    def metrics(self, predicted: ndarray, y: ndarray) -> dict[str, Any]:
        """MAE, RMSE and R2 in the scale of the target."""
        return {"mae": metrics.mae(y, predicted), "rmse": metrics.rmse(y, predicted), "r2": metrics.r2(y, predicted)}

    def values(self, outputs: Tensor, trust: RowTrust) -> ndarray:
        """Predictions in the scale of the target (n,), from members' outputs (m, n, 1)."""
        return self.original(self.combined(outputs, trust)[:, 0])

    def point(self, view: View, trust: RowTrust) -> ndarray:
        return self.values(view.outputs().cpu(), trust)

    def intervals(
        self,
        outputs: Tensor,
        trust: RowTrust,
        level: float | None = None,
        groups: ndarray | None = None,
        spreads: ndarray | None = None,
    ) -> tuple[ndarray, ndarray]:
        """Conformal intervals (low and high ends, (n,)) in the form that was asked for; each holds its prediction.

        `groups` (n,) for intervals by group; `spreads` (n,) for a model that knows the deviation of its predictions.
        """
        level, options = trust.level if level is None else check_level(level), trust.options
        predictions = group_predictions(self, outputs, trust.groups, trust.shares)
        centres = np.stack([self.original(prediction[:, 0]) for prediction in predictions])
        if options is None or not options.method:
            low, high = trust.scores.intervals(centres, level)
        elif options.method == "cqr":
            lower, upper = zip(*(self.quantile_ends(prediction) for prediction in predictions), strict=True)
            low, high = options.ends(np.stack(lower), np.stack(upper), level, groups)
        elif options.method == "normalised":
            assert spreads is not None
            zero = np.zeros_like(centres)
            low, high = (centres[0] + end * spreads * self.scale for end in options.ends(zero, zero, level, groups))
        else:
            low, high = options.ends(centres, centres, level, groups)
        centre = self.values(outputs, trust)
        return np.minimum(low, centre), np.maximum(high, centre)

    def compared(self, view: View, trust: RowTrust) -> ndarray:
        return self.original(self.in_turn(view, trust)[:, :1])

    def read_options(self, saved: Any) -> NumberOptions:
        return NumberOptions.from_json(saved)

    def with_options(self, trust: RowTrust, validation: View, calibration: View, wanted: Wanted) -> RowTrust:
        """Intervals as they were asked for, calibrated on held-out rows."""
        spread = calibration.spreads()
        if not wanted.given and spread is None:
            return trust
        method = wanted.method if wanted.method in ("group", "cqr") else ("" if spread is None else "normalised")
        if not method:
            return replace(trust, options=NumberOptions(uncertainty=wanted.uncertainty))
        holdout = calibration.holdout()
        prediction = holdout_prediction(self, holdout, trust.groups, trust.shares)
        gap = np.abs(holdout.y - self.original(prediction[:, 0]))
        groups = None if wanted.group is None else calibration.column(wanted.group)
        if method == "cqr":
            low, high = self.quantile_ends(prediction)
            gap = np.maximum(low - holdout.y, holdout.y - high)
        elif method == "normalised":
            assert spread is not None
            gap = gap / (spread * self.scale)
        cells = cells_of(gap, holdout.fold, trust.groups, groups, calibration.ratios())
        return replace(trust, options=NumberOptions(method, wanted.group, cells, wanted.uncertainty))

    def quantile_ends(self, prediction: ndarray) -> tuple[ndarray, ndarray]:
        """The two predicted quantiles in the scale of the target, in order. Shapes: (n, 3) -> (n,), (n,)."""
        ends = np.stack([self.original(prediction[:, place]) for place in (1, 2)])
        return ends.min(0), ends.max(0)

    def evaluate(self, view: View, trust: RowTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        outputs = view.outputs().cpu()
        groups = self.group_of(view, trust)
        low, high = self.intervals(outputs, trust, level, groups, view.spreads())
        y = view.targets()
        parts = self.parts_of_model(view, outputs, y, trust)
        evaluation = self.evaluate_outputs(outputs, y, trust, level, (low, high))
        hits, column = (low <= y) & (y <= high), None if trust.options is None else trust.options.group
        evaluation["conformal"] |= {"coverage": covered(hits, view)} | by_group(hits, view, groups, column)
        return evaluation | ({"parts": parts} if parts else {})

    def evaluate_outputs(
        self,
        outputs: Tensor,
        y: ndarray,
        trust: RowTrust,
        level: float | None = None,
        ends: tuple[ndarray, ndarray] | None = None,
    ) -> dict[str, Any]:
        """`evaluate` for given outputs (m, n, 1)."""
        level = trust.level if level is None else check_level(level)
        values = self.values(outputs, trust)
        low, high = self.intervals(outputs, trust, level) if ends is None else ends
        note = trust.scores.note(level)
        if trust.options is not None and trust.options.method:
            note = trust.options.note(level)
        return {
            "rows": len(y),
            "metrics": self.metrics(values, y),
            "conformal": {
                "level": level,
                "coverage": float(((low <= y) & (y <= high)).mean()),
                "mean_width": float(np.mean(high - low)) if np.isfinite(high - low).all() else None,
                "note": note,
            },
        }

    def predictions(self, view: View, trust: RowTrust, level: float | None = None) -> pd.DataFrame:
        """The predicted number and its interval."""
        outputs = view.outputs().cpu()
        low, high = self.intervals(outputs, trust, level, self.group_of(view, trust), view.spreads())
        columns = {"prediction": self.values(outputs, trust), "low": low, "high": high}
        drawn = self.drawn_outputs(view, outputs, trust)
        if drawn is not None:
            # Members predict means: the noise is that of the calibration residuals, the model's own error there included.
            residuals = np.concatenate(trust.scores.groups)
            parts = number_uncertainty(drawn[..., 0].double().numpy() * self.scale)
            noise = float(np.mean(np.square(residuals)))
            columns |= {"aleatoric": np.full(len(low), noise**0.5), "epistemic": parts.epistemic**0.5}
        return pd.DataFrame(columns)

    def answers(self, trust: RowTrust, level: float) -> nn.Module | str:
        if trust.scores.weights is not None:
            return "Intervals that are weighted towards other rows are not written as a torch program."
        if trust.options is not None and trust.options.group is not None:
            return "Intervals by group need the group of each row, which the model does not read."
        return NumberAnswers(self, trust, level)

    def difference(self, table: pd.DataFrame, exported: Mapping[str, Any]) -> float:
        """Of predictions and ends of intervals, in units of the standard deviation of the target."""
        largest = 0.0
        for name in ("prediction", "low", "high"):
            expected, given = table[name].to_numpy(), exported[name]
            same = expected == given  # infinite ends as well
            with np.errstate(invalid="ignore"):
                apart = np.abs(np.where(same, 0.0, expected - given))
            largest = max(largest, float(apart.max(initial=0.0)))
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
        groups, spreads = self.group_of(view, trust), view.spreads()
        low, high = self.intervals(outputs, trust, trust.level, groups, spreads)
        drawn = np.linspace(0, len(y) - 1, min(len(y), 400)).astype(int)
        worst = np.argsort(-np.abs(values - y), kind="stable")[:12]

        def row(i: int) -> dict[str, Any]:
            ends = {"low": float(low[i]), "high": float(high[i])} if np.isfinite(high[i]) else {}
            return {"true": float(y[i]), "predicted": float(values[i])} | ends

        def coverage(level: float) -> float:
            below, above = self.intervals(outputs, trust, level, groups, spreads)
            return covered((below <= y) & (y <= above), view)

        return {
            "answers": "regression",
            "values": True,
            "conformal": record["conformal"] | {
                "examples": [row(int(i)) for i in drawn],
                "levels": [{"level": level, "coverage": coverage(level)} for level in LEVELS],
            },
            "mistakes": [row(int(i)) | dataset.shown(int(view.part[i])) for i in worst.tolist()],
        }  # fmt: skip
