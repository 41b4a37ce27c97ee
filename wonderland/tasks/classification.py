"""Classification."""

from collections.abc import Mapping, Sequence
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
from wonderland.tasks.answers import ClassAnswers
from wonderland.tasks.rows import LEVELS, RowTask, weighted_mean
from wonderland.tasks.trust import RowTrust, group_predictions, holdout_prediction
from wonderland.tasks.view import Holdout, View
from wonderland.trust.calibration import ece, fit_temperature, log_softmax, reliability
from wonderland.trust.conformal import check_level, misfit


@part
class Classification(RowTask):
    """One of `classes`, by name. Binary classification has two logits, like any other number of classes.

    Model outputs are logits (b, c), or (m, b, c) from an ensemble of m members.

    >>> task = Classification(["cat", "dog"])
    >>> task.names(np.array([1, 0]))
    ['dog', 'cat']
    """

    name = "classification"
    classes: list[str]
    watch = "brier"  # not the log loss: confidence overfits long before accuracy does

    def __init__(self, classes: Sequence[str], label_smoothing: float = 0.0):
        if not isinstance(classes, list | tuple) or not all(isinstance(label, str) for label in classes):
            raise WonderlandError("Classification takes the names of its classes as a list of strings.")
        if len(classes) < 2:
            raise WonderlandError(f"Classification needs at least two classes, not {len(classes)}.")
        if len(set(classes)) < len(classes):
            raise WonderlandError("Classification takes distinct names of classes, and one of them occurs twice.")
        self.classes = list(classes)  # pyright: ignore[reportIncompatibleVariableOverride]
        self.label_smoothing = label_smoothing
        self.outputs = len(self.classes)

    def arguments(self) -> dict[str, Any]:
        return {"classes": self.classes, "label_smoothing": self.label_smoothing}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Cross-entropy from logits, the mean over examples and members."""
        logits, y = model(batch["x"]), batch["y"]
        if logits.dim() == y.dim() + 2:
            y = y.expand(logits.shape[:-1])
        logits, y, smoothing = logits.flatten(0, -2), y.flatten(), self.label_smoothing
        if "weight" not in batch.fields:
            return F.cross_entropy(logits, y, label_smoothing=smoothing), float(len(batch))
        losses = F.cross_entropy(logits, y, label_smoothing=smoothing, reduction="none")
        return weighted_mean(losses, batch["weight"]), float(len(batch))

    def combine(self, outputs: Tensor, shares: ndarray | None = None) -> Tensor:
        """Combine members (m, b, c) into one prediction (b, c): the log of their mean probability, weighted by shares (m,)."""
        logits = outputs.double().log_softmax(-1)
        weights = np.full(len(outputs), 1 / len(outputs)) if shares is None else shares
        return torch.logsumexp(logits + torch.as_tensor(np.log(np.maximum(weights, 1e-300)))[:, None, None], 0)

    def errors(self, outputs: Tensor, y: ndarray) -> ndarray:
        """Each member's probabilities minus the one-hot targets: (m, n, c)."""
        return (outputs.double().softmax(-1) - F.one_hot(torch.as_tensor(y), self.outputs)).numpy()

    def scores(self, prediction: ndarray, y: ndarray, temperature: float) -> ndarray:
        return misfit(prediction / temperature)[np.arange(len(prediction)), y]

    def temperature(self, holdout: Holdout, groups: int, shares: ndarray) -> float:
        prediction = holdout_prediction(self, holdout, groups, shares)
        temperature = fit_temperature(prediction, holdout.y, weights=holdout.weights)
        # The temperature is fitted on one group, but predictions are the mean of all groups, which is less confident already.
        # On six data sets the square root of the temperature gave the best log loss.
        return temperature**0.5 if groups > 1 else temperature

    def prediction_metrics(self, prediction: ndarray, y: ndarray, squared_error: float) -> dict[str, float]:
        values = self.metrics(prediction, y)
        return {"brier": squared_error, "loss": values["log_loss"], "accuracy": values["accuracy"]}

    def metrics(self, log_probabilities: ndarray, y: ndarray) -> dict[str, Any]:
        """Accuracy, balanced accuracy, log loss and AUROC from log-probabilities (n, c)."""
        predicted = log_probabilities.argmax(1)
        return {
            "accuracy": metrics.accuracy(y, predicted),
            "balanced_accuracy": metrics.balanced_accuracy(y, predicted),
            "log_loss": metrics.log_loss(y, log_probabilities),
            "auroc": metrics.macro_auroc(y, np.exp(log_probabilities)),
        }

    def log_probabilities(self, outputs: Tensor, trust: RowTrust, *, calibrated: bool = True) -> ndarray:
        """Members' logits (m, n, c) as one calibrated log-probability for each class (n, c)."""
        combined = self.combined(outputs, trust)
        return log_softmax(combined / trust.temperature if calibrated else combined)

    def sets(self, outputs: Tensor, trust: RowTrust, level: float | None = None) -> ndarray:
        """Conformal sets of classes as booleans (n, c)."""
        groups = group_predictions(self, outputs, trust.groups, trust.shares)
        candidates = np.stack([misfit(prediction / trust.temperature) for prediction in groups])
        return trust.scores.sets(candidates, trust.level if level is None else level)

    def evaluate(self, view: View, trust: RowTrust, level: float | None = None) -> dict[str, Any]:
        return self.evaluate_outputs(view.outputs().cpu(), view.targets(), trust, level)

    def evaluate_outputs(
        self, outputs: Tensor, y: ndarray, trust: RowTrust, level: float | None = None
    ) -> dict[str, Any]:
        """`evaluate` for given outputs (m, n, c)."""
        level = trust.level if level is None else check_level(level)
        calibrated = self.log_probabilities(outputs, trust)
        raw = self.log_probabilities(outputs, trust, calibrated=False)
        sets = self.sets(outputs, trust, level)
        sizes = sets.sum(1)
        counts = np.bincount(y, minlength=self.outputs)
        return {
            "rows": len(y),
            "most_frequent": {"class": self.classes[counts.argmax()], "share": float(counts.max() / len(y))},
            "metrics": self.metrics(calibrated, y),
            "ece": {"before": ece(np.exp(raw), y), "after": ece(np.exp(calibrated), y)},
            "reliability": {
                "before": [vars(b) for b in reliability(np.exp(raw), y)],
                "after": [vars(b) for b in reliability(np.exp(calibrated), y)],
            },
            "conformal": {
                "level": level,
                "coverage": float(sets[np.arange(len(y)), y].mean()),
                "mean_size": float(sizes.mean()),
                "empty": int((sizes == 0).sum()),
                "sizes": {int(size): int((sizes == size).sum()) for size in np.unique(sizes)},
                "note": trust.scores.note(level),
            },
        }

    def predictions(self, view: View, trust: RowTrust, level: float | None = None) -> pd.DataFrame:
        """The predicted class, its probability, the conformal set, and the probability of each class."""
        outputs = view.outputs().cpu()
        level = trust.level if level is None else check_level(level)
        probabilities = np.exp(self.log_probabilities(outputs, trust))
        sets = self.sets(outputs, trust, level)
        best = probabilities.argmax(1)
        plausible = [[self.classes[code] for code in np.flatnonzero(row)] for row in sets]
        columns: dict[str, Any] = {
            "prediction": self.names(best),
            "probability": probabilities[np.arange(len(best)), best],
            "set": pd.Series(plausible, dtype=object),
        }
        columns |= {f"p({label})": probabilities[:, code] for code, label in enumerate(self.classes)}
        return pd.DataFrame(columns)

    def answers(self, trust: RowTrust, level: float) -> nn.Module | str:
        if getattr(trust, "options", None) is not None:
            return "Sets, thresholds, costs or calibrators that were asked for in fit are not written as a torch program."
        return ClassAnswers(self, trust, level)

    def difference(self, table: pd.DataFrame, exported: Mapping[str, Any]) -> float:
        """Of probabilities. Sets must be equal; a predicted class may differ only between two that are equally probable."""
        sets = [[self.classes[code] for code in np.flatnonzero(row)] for row in exported["set"]]
        if sets != table["set"].tolist():
            return float("inf")
        expected = table[[f"p({label})" for label in self.classes]].to_numpy()
        largest = float(np.abs(expected - exported["probabilities"]).max(initial=0.0))
        codes = np.array([self.classes.index(str(name)) for name in exported["prediction"]], np.int64)
        chosen = expected[np.arange(len(codes)), codes]
        return max(largest, float((expected.max(1) - chosen).max(initial=0.0)))

    def names(self, codes: ndarray) -> list[str]:
        """Class names for codes."""
        return [self.classes[code] for code in codes]

    def row_scores(self, outputs: Tensor, y: Tensor, trust: RowTrust) -> Tensor:
        """The log-probability of the true class of each row."""
        return torch.as_tensor(self.log_probabilities(outputs, trust))[torch.arange(len(y)), y]

    score_name = "log loss"

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss", True), ("brier", "Brier score", False), ("accuracy", "accuracy", False)]

    def facts(self, view: View, trust: RowTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        """Confusion, reliability, sets and the most confident mistakes."""
        outputs, y, classes = view.outputs().cpu(), view.targets(), self.classes
        probabilities = np.exp(self.log_probabilities(outputs, trust))
        predicted, confidence = probabilities.argmax(1), probabilities.max(1)
        sets = self.sets(outputs, trust)
        wrong = np.flatnonzero(predicted != y)
        worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:12]
        rows = np.arange(len(y))
        conformal = record["conformal"] | {
            "empty": int((sets.sum(1) == 0).sum()),
            "levels": [
                {"level": level, "coverage": float(self.sets(outputs, trust, level)[rows, y].mean())}
                for level in LEVELS
            ],
            "per_class": {
                classes[code]: float(sets[y == code, code].mean()) for code in range(len(classes)) if (y == code).any()
            },
        }
        return {
            "answers": "two classes" if len(classes) == 2 else f"{len(classes):,} classes",
            "confusion": metrics.confusion(y, predicted, len(classes)).tolist(),
            "reliability": record["reliability"] | {
                "ece_before": record["ece"]["before"],
                "ece_after": record["ece"]["after"],
                "temperature": trust.temperature,
            },
            "conformal": conformal,
            "balance": {label: int((dataset.y == code).sum()) for code, label in enumerate(classes)},
            "mistakes": [
                {"true": classes[y[i]], "predicted": classes[predicted[i]], "probability": float(confidence[i])}
                | dataset.shown(int(view.part[i]))
                for i in worst
            ],
        }  # fmt: skip
