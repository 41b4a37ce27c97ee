"""Classification."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core import WonderlandError, nearest, part
from wonderland.core.batch import Batch
from wonderland.tasks import metrics
from wonderland.tasks.answers import ClassAnswers
from wonderland.tasks.class_options_answers import ClassOptionsAnswers, why_not
from wonderland.tasks.class_trust import METRICS, ROWS_TO_CHOOSE, ClassOptions, better_calibrator, fit_options
from wonderland.tasks.coverage import FEWEST_ROWS, by_group, covered, least_covered
from wonderland.tasks.rows import LEVELS, RowTask, weighted_mean
from wonderland.tasks.trust import RowTrust, group_predictions, holdout_prediction
from wonderland.tasks.view import Holdout, View
from wonderland.tasks.wanted import Wanted, read_cost
from wonderland.trust.calibration import ece, fit_temperature, log_softmax, reliability
from wonderland.trust.conformal import check_level, misfit
from wonderland.trust.conformal_sets import joined_sets
from wonderland.trust.decisions import cheapest, coverage_risk, mean_cost
from wonderland.trust.uncertainty import class_uncertainty

RARE_SHARE = 0.2  # of the rows; with a rarer class, metrics that it counts in are added


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
    trust_options = ("conformal", "metric", "cost", "abstain", "uncertainty")
    conformal_methods = ("split", "cross", "class", "group", "aps", "raps")
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

    def metrics(self, log_probabilities: ndarray, y: ndarray, options: ClassOptions | None = None) -> dict[str, Any]:
        """Accuracy, balanced accuracy, log loss and AUROC from log-probabilities (n, c)."""
        predicted = log_probabilities.argmax(1) if options is None else options.decide(np.exp(log_probabilities))
        return {
            "accuracy": metrics.accuracy(y, predicted),
            "balanced_accuracy": metrics.balanced_accuracy(y, predicted),
            "log_loss": metrics.log_loss(y, log_probabilities),
            "auroc": metrics.macro_auroc(y, np.exp(log_probabilities)),
        } | self.rare_class_metrics(log_probabilities, predicted, y)

    def rare_class_metrics(self, log_probabilities: ndarray, predicted: ndarray, y: ndarray) -> dict[str, Any]:
        """Metrics that rare classes count in: of the rarer of two classes, or the mean over classes."""
        shares = np.bincount(y, minlength=self.outputs) / max(1, len(y))
        if self.outputs == 2 and 0 < shares.min() < RARE_SHARE:
            rare = int(shares.argmin())
            return {
                "average_precision": metrics.average_precision(y == rare, log_probabilities[:, rare]),
                "rare_class_f1": metrics.precision_recall_f1(y, predicted, positive=rare)[2],
            }
        if self.outputs > 2 and shares.min() < RARE_SHARE / self.outputs:
            return {"macro_f1": metrics.macro_f1(y, predicted)}
        return {}

    def plain_metrics(self, prediction: ndarray, y: ndarray) -> dict[str, Any]:
        return self.metrics(log_softmax(prediction), y)

    def log_probabilities(self, outputs: Tensor, trust: RowTrust, *, calibrated: bool = True) -> ndarray:
        """Members' logits (m, n, c) as one calibrated log-probability for each class (n, c)."""
        combined = self.combined(outputs, trust)
        calibrator = None if trust.options is None else trust.options.calibrator
        if calibrated and calibrator is not None:
            logs = np.log(np.maximum(calibrator(combined), 1e-12))
        else:
            logs = log_softmax(combined / trust.temperature if calibrated else combined)
        if trust.label_weights is None or not calibrated:
            return logs
        return log_softmax(logs + np.log(np.maximum(trust.label_weights, 1e-12)))

    def point(self, view: View, trust: RowTrust) -> ndarray:
        return self.log_probabilities(view.outputs().cpu(), trust)

    def sets(
        self, outputs: Tensor, trust: RowTrust, level: float | None = None, groups: ndarray | None = None
    ) -> ndarray:
        """Conformal sets of classes as booleans (n, c), in the form that was asked for; `groups` (n,) for sets by group.

        A set that is not empty holds the predicted class.
        """
        level, options = trust.level if level is None else check_level(level), trust.options
        scaled = [raw / trust.temperature for raw in group_predictions(self, outputs, trust.groups, trust.shares)]
        if trust.label_scores is not None:
            candidates = misfit(self.log_probabilities(outputs, trust))
            sets = trust.label_scores.p_values(candidates) > 1 - level + 1e-12
        elif options is not None and options.sets:
            own = [np.exp(log_softmax(raw)) for raw in scaled]
            own = own if options.calibrator is None else [options.calibrator(scaled[0] * trust.temperature)]
            sets = joined_sets(options.sets, np.stack(own), level, groups=groups)
        else:
            candidates = np.stack([misfit(raw) for raw in scaled])
            cross = options is not None and options.cross
            p_values = trust.scores.cross_p_values(candidates) if cross else trust.scores.p_values(candidates)
            sets = p_values > 1 - level + 1e-12
        predicted = np.arange(self.outputs) == self.decide(self.log_probabilities(outputs, trust), trust)[:, None]
        return sets | (predicted & sets.any(1, keepdims=True))

    def compared(self, view: View, trust: RowTrust) -> ndarray:
        raw = self.in_turn(view, trust)
        calibrator = None if trust.options is None else trust.options.calibrator
        return np.exp(log_softmax(raw / trust.temperature)) if calibrator is None else calibrator(raw)

    def decide(self, log_probabilities: ndarray, trust: RowTrust) -> ndarray:
        """The predicted class of each row. Shapes: (n, c) -> (n,)."""
        if trust.options is None:
            return log_probabilities.argmax(1)
        return trust.options.decide(np.exp(log_probabilities))

    def read_options(self, saved: Any) -> ClassOptions:
        return ClassOptions.from_json(saved, self.outputs)

    def check_wanted(self, wanted: Wanted) -> None:
        super().check_wanted(wanted)
        if wanted.metric is not None and wanted.metric not in METRICS:
            known = ", ".join(METRICS)
            raise WonderlandError(
                f"There is no metric {wanted.metric!r} to decide by.{nearest(wanted.metric, METRICS)} Known are {known}."
            )
        if wanted.cost is not None:
            read_cost(wanted.cost, self.classes)

    def with_options(self, trust: RowTrust, validation: View, calibration: View, wanted: Wanted) -> RowTrust:
        """The calibrator, sets, thresholds, costs and abstention that were asked for, fitted on held-out rows."""
        single = trust.groups == 1 and calibration is not validation
        if not wanted.given and not (single and validation.count >= ROWS_TO_CHOOSE):
            return trust
        first = validation.holdout()
        logits = holdout_prediction(self, first, trust.groups, trust.shares)
        calibrator = better_calibrator(logits, first.y, trust.temperature) if single else None
        if not wanted.given and calibrator is None:
            return trust

        def probabilities(raw: ndarray) -> ndarray:
            return np.exp(log_softmax(raw / trust.temperature)) if calibrator is None else calibrator(raw)

        second = calibration.holdout() if single else first
        raw = holdout_prediction(self, second, trust.groups, trust.shares)
        groups = None if wanted.group is None else calibration.column(wanted.group)
        options = fit_options(
            wanted, self.classes, calibrator, (probabilities(logits), first.y), (probabilities(raw), second.y),
            second.fold, groups, trust.level,
        )  # fmt: skip
        return replace(trust, options=options)

    def evaluate(self, view: View, trust: RowTrust, level: float | None = None) -> dict[str, Any]:
        outputs, y = view.outputs().cpu(), view.targets()
        groups = self.group_of(view, trust)
        sets = self.sets(outputs, trust, level, groups)
        evaluation = self.evaluate_outputs(outputs, y, trust, level, sets)
        hits, column = sets[np.arange(len(y)), y], None if trust.options is None else trust.options.group
        evaluation["conformal"] |= {"coverage": covered(hits, view)} | by_group(hits, view, groups, column)
        if parts := self.parts_of_model(view, outputs, y, trust):
            evaluation["parts"] = parts
        if trust.options is not None:
            evaluation |= self.evaluate_options(outputs, y, trust)
            if trust.options.sets:
                evaluation["conformal"]["note"] = trust.options.note(evaluation["conformal"]["level"], self.classes)
        return evaluation

    def evaluate_options(self, outputs: Tensor, y: ndarray, trust: RowTrust) -> dict[str, Any]:
        """What thresholds, costs and abstention come to on rows with known targets."""
        options, measured = trust.options, {}
        p = np.exp(self.log_probabilities(outputs, trust))
        predicted = options.decide(p)
        if options.metric is not None:
            measure = METRICS[options.metric]
            measured["decided_by"] = {"metric": options.metric, "value": measure(y, predicted),
                                      "most_probable": measure(y, p.argmax(1))}  # fmt: skip
        if options.cost is not None:
            likely = [options.actions.index(name) if name in options.actions else -1 for name in self.classes]
            costs = {"chosen": mean_cost(cheapest(p, options.cost), y, options.cost)}
            if min(likely) >= 0:
                costs["most_probable"] = mean_cost(np.array(likely)[p.argmax(1)], y, options.cost)
            measured["cost"] = costs
        if options.abstention is not None:
            answered = options.abstention.answers(p.max(1))
            curve = coverage_risk(p.max(1), (predicted != y).astype(float))
            drawn = np.linspace(0, len(y) - 1, min(len(y), 50)).astype(int)
            measured["abstention"] = {
                "asked": options.risk,
                "answered": float(answered.mean()),
                "risk": float((predicted != y)[answered].mean()) if answered.any() else None,
                "bound": options.abstention.bound,
                "curve": [{"coverage": float(curve.coverage[i]), "risk": float(curve.risk[i])} for i in drawn],
            }
        return measured

    def evaluate_outputs(
        self, outputs: Tensor, y: ndarray, trust: RowTrust, level: float | None = None, sets: ndarray | None = None
    ) -> dict[str, Any]:
        """`evaluate` for given outputs (m, n, c)."""
        level = trust.level if level is None else check_level(level)
        calibrated = self.log_probabilities(outputs, trust)
        raw = self.log_probabilities(outputs, trust, calibrated=False)
        sets = self.sets(outputs, trust, level) if sets is None else sets
        sizes = sets.sum(1)
        counts = np.bincount(y, minlength=self.outputs)
        return {
            "rows": len(y),
            "most_frequent": {"class": self.classes[counts.argmax()], "share": float(counts.max() / len(y))},
            "metrics": self.metrics(calibrated, y, trust.options),
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
                "worst": least_covered(sets[np.arange(len(y)), y], np.array(self.classes)[y], FEWEST_ROWS),
                "sizes": {int(size): int((sizes == size).sum()) for size in np.unique(sizes)},
                "note": trust.scores.note(level),
            },
        }

    def predictions(self, view: View, trust: RowTrust, level: float | None = None) -> pd.DataFrame:
        """The predicted class, its probability, the conformal set, and the probability of each class."""
        outputs = view.outputs().cpu()
        level = trust.level if level is None else check_level(level)
        log_probabilities = self.log_probabilities(outputs, trust)
        probabilities, best = np.exp(log_probabilities), self.decide(log_probabilities, trust)
        sets = self.sets(outputs, trust, level, self.group_of(view, trust))
        plausible = [[self.classes[code] for code in np.flatnonzero(row)] for row in sets]
        columns: dict[str, Any] = {
            "prediction": self.names(best),
            "probability": probabilities[np.arange(len(best)), best],
            "set": pd.Series(plausible, dtype=object),
        }
        if trust.options is not None:
            columns |= trust.options.columns(probabilities, columns["prediction"])
        drawn = self.drawn_outputs(view, outputs, trust)
        if drawn is not None:
            parts = class_uncertainty(drawn.double().softmax(-1).numpy())
            columns |= {"aleatoric": parts.aleatoric, "epistemic": parts.epistemic}
        columns |= {f"p({label})": probabilities[:, code] for code, label in enumerate(self.classes)}
        return pd.DataFrame(columns)

    def answers(self, trust: RowTrust, level: float) -> nn.Module | str:
        if trust.scores.weights is not None:
            return "Sets that are weighted towards other rows are not written as a torch program."
        if trust.options is not None:
            return why_not(trust.options, self.outputs) or ClassOptionsAnswers(self, trust, level)
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
        given = expected[np.arange(len(codes)), [self.classes.index(str(name)) for name in table["prediction"]]]
        return max(largest, float(np.abs(given - chosen).max(initial=0.0)))

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
        log_probabilities = self.log_probabilities(outputs, trust)
        probabilities, predicted = np.exp(log_probabilities), self.decide(log_probabilities, trust)
        confidence = probabilities[np.arange(len(y)), predicted]
        groups = self.group_of(view, trust)
        sets = self.sets(outputs, trust, groups=groups)
        wrong = np.flatnonzero(predicted != y)
        worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:12]
        rows = np.arange(len(y))
        calibrator = None if trust.options is None else trust.options.calibrator
        conformal = record["conformal"] | {
            "empty": int((sets.sum(1) == 0).sum()),
            "levels": [
                {"level": level, "coverage": covered(self.sets(outputs, trust, level, groups)[rows, y], view)}
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
                "temperature": trust.temperature if calibrator is None else None,
                "calibrator": None if calibrator is None else calibrator.method,
            },
            "conformal": conformal,
            "decisions": {name: record[name] for name in ("decided_by", "cost", "abstention") if name in record},
            "balance": {label: int((dataset.y == code).sum()) for code, label in enumerate(classes)},
            "mistakes": [
                {"true": classes[y[i]], "predicted": classes[predicted[i]], "probability": float(confidence[i]),
                 "place": int(view.part[i])}
                | dataset.shown(int(view.part[i]))
                for i in worst
            ],
        }  # fmt: skip
