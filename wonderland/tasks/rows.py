"""Base class of classification and regression: one prediction for each row, from a model or an ensemble."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core.batch import Batch
from wonderland.tasks.leaderboard import class_row, number_row, sentence
from wonderland.tasks.task import Task
from wonderland.tasks.trust import RowTrust, holdout_prediction, variant_weights
from wonderland.tasks.view import Holdout, View
from wonderland.tasks.view import outputs as model_outputs
from wonderland.trust.conformal import Scores, check_level
from wonderland.trust.weights import spread

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)


class RowTask(Task):
    """One prediction for each row. A model returns (b, outputs), or (m, b, outputs) for an ensemble of m members."""

    @abstractmethod
    def combine(self, outputs: Tensor, shares: ndarray | None = None) -> Tensor:
        """Combine the outputs of members (m, b, c) into one prediction (b, c), weighted by shares (m,)."""

    @abstractmethod
    def errors(self, outputs: Tensor, y: ndarray) -> ndarray:
        """The error of each member for each row: (m, n, c)."""

    @abstractmethod
    def scores(self, prediction: ndarray, y: ndarray, temperature: float) -> ndarray:
        """The conformal score of the target of each row (n,)."""

    def temperature(self, holdout: Holdout, groups: int, shares: ndarray) -> float:
        """The temperature of the logits; 1 where outputs are not logits."""
        return 1.0

    @abstractmethod
    def prediction_metrics(self, prediction: ndarray, y: ndarray, squared_error: float) -> dict[str, float]:
        """Metrics of a prediction, including the watched one."""

    def measure(self, view: View) -> dict[str, float]:
        holdout = view.out_of_fold()
        shares = variant_weights(self, holdout, 1, view.variants, view.linear)
        prediction = holdout_prediction(self, holdout, 1, shares)
        errors = self.errors(torch.as_tensor(prediction)[None], holdout.y)
        squared = np.square(errors).sum(-1)[0]
        return self.prediction_metrics(prediction, holdout.y, float(np.average(squared, weights=holdout.weights)))

    def calibrate(self, validation: View, calibration: View, level: float) -> RowTrust:
        check_level(level)
        groups, first = validation.groups, validation.holdout()
        shares = variant_weights(self, first, groups, validation.variants, validation.linear)
        temperature = self.temperature(first, groups, shares)
        second = first if calibration is validation else calibration.holdout()
        scores = self.scores(holdout_prediction(self, second, groups, shares), second.y, temperature)
        return RowTrust(temperature, Scores.of(scores, second.fold, groups, calibration.ratios()), level, shares)

    def parts_of_model(self, view: View, outputs: Tensor, y: ndarray, trust: RowTrust) -> list[dict[str, Any]]:
        """Metrics of each kind of member alone, and its share in the prediction, where the model names them."""
        names = getattr(view.model, "variant_names", ())
        if len(names) != len(trust.shares):
            return []
        alone = (self.combine(outputs[place :: len(names)]).numpy() for place in range(len(names)))
        return [
            {"name": name, "share": float(share), "metrics": self.plain_metrics(prediction, y)}
            for name, share, prediction in zip(names, trust.shares, alone, strict=True)
        ]

    def plain_metrics(self, prediction: ndarray, y: ndarray) -> dict[str, Any]:
        """Metrics of a prediction (n, c) as the model makes it, without calibration."""
        return {}

    def trust(self, saved: Any) -> RowTrust:
        return RowTrust.from_json(saved, self.read_options)

    @abstractmethod
    def read_options(self, saved: Any) -> Any:
        """The fitted options of trust from their JSON; damaged content is refused."""

    def group_of(self, view: View, trust: RowTrust) -> ndarray | None:
        """The group of each row (n,), where sets or intervals are calibrated by group."""
        name = None if trust.options is None else trust.options.group
        return None if name is None else view.column(name)

    def drawn_outputs(self, view: View, outputs: Tensor, trust: RowTrust) -> Tensor | None:
        """Outputs of members or draws (m, n, c), for the parts of the uncertainty; None where they were not asked for."""
        asked = None if trust.options is None else trust.options.uncertainty
        if asked is None:
            return None
        if asked == "ensemble":
            return outputs
        return view.dropout_draws() if asked == "dropout" else view.posterior_draws()

    def compared(self, view: View, trust: RowTrust) -> ndarray:
        """Predictions of rows for tests of shift: class probabilities, or values (n, c).

        A row of the training part is predicted by the members that were not trained on it, a new row by the members of one
        fold, taken in turn, so that both have the same distribution.
        """
        return self.in_turn(view, trust)

    def in_turn(self, view: View, trust: RowTrust) -> ndarray:
        """The combined outputs (n, c) for each row, by the group of its fold, or by groups in turn."""
        fold = np.arange(view.count) % trust.groups
        if view.folds is not None:
            fold = np.maximum(view.folds[view.part], 0).astype(np.int64)
        holdout = Holdout(view.outputs().cpu(), fold, np.empty(0))
        return holdout_prediction(self, holdout, trust.groups, trust.shares)

    def combined(self, outputs: Tensor, trust: RowTrust) -> ndarray:
        """Outputs of members as one prediction (n, c), weighted as trust says."""
        return self.combine(outputs, spread(trust.shares, len(outputs))).numpy()

    def leaderboard_row(self, name: str, predicted: ndarray, ours: ndarray | None, y: ndarray) -> dict[str, Any]:
        """The row of a method: its measures, and the differences of this model (`ours`) from it."""
        return (number_row if self.classes is None else class_row)(name, predicted, ours, y)

    def leaderboard_sentence(self, rows: list[dict[str, Any]], count: int) -> str:
        """What the leaderboard says, in a sentence; empty where the model is better than every method."""
        return sentence(rows, count)

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        shape = tuple(model_outputs(model, batch["x"]).shape[1:])
        if shape != (len(batch), self.outputs):
            return f"returns {shape} for two rows, where this task needs ({len(batch)}, {self.outputs})"
        return None

    def check_run(self, model: nn.Module, encoder: Any, trust: RowTrust, folds: int) -> str | None:
        members = getattr(model, "members", 1)
        variants = len(trust.shares)
        if trust.groups != folds or members % folds or (members // folds) % variants or not trust.scores.count:
            return "trust.json does not fit the run's members: it is damaged."
        if self.classes != vars(encoder).get("classes"):
            return "preprocess.json has other classes than config.json: the two do not belong together."
        return None


def weighted_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """The mean of losses times weights. Weights of a training part have a mean of 1, so the loss keeps its size.

    Shapes: losses (..., b), with the members of an ensemble first; weights (b,) or one row for each member.
    """
    losses = losses.reshape(-1, *weights.shape)
    return (losses * weights.to(losses.dtype)).mean()
