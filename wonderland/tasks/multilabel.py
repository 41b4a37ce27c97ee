"""Multi-label classification: each label is present or absent, independent of the others."""

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
from wonderland.tasks.label_answers import LabelAnswers
from wonderland.tasks.label_trust import LabelTrust, f1_thresholds, fit_scale
from wonderland.tasks.rows import LEVELS, RowTask, weighted_mean
from wonderland.tasks.trust import group_predictions, holdout_prediction, variant_weights
from wonderland.tasks.view import View
from wonderland.trust.calibration import binned, summarise
from wonderland.trust.conformal import check_level
from wonderland.trust.risk_control import THRESHOLDS, false_negative_rates
from wonderland.understand.format import number, percent


@part
class MultiLabel(RowTask):
    r"""Any number of `labels` for each row, learned by the cross-entropy of each label.

    .. math:: L = -\frac{1}{k} \sum_j y_j \log \sigma(z_j) + (1 - y_j) \log (1 - \sigma(z_j))

    Targets are (b, k) of 0 and 1; model outputs are logits (b, k), or (m, b, k) from an ensemble of m members. A fitted run has a
    calibrated probability and a threshold for each label, and sets that miss at most a share 1 - level of a row's labels on
    average (conformal risk control).

    >>> task = MultiLabel(["red", "blue"])
    >>> task.names(np.array([[True, True], [False, True]]))
    [['red', 'blue'], ['blue']]
    """

    name = "multilabel"
    watch = "brier"

    def __init__(self, labels: Sequence[str]):
        if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
            raise WonderlandError("MultiLabel takes the names of its labels as a list of strings.")
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise WonderlandError(f"MultiLabel needs at least two labels with different names, not {list(labels)[:5]}.")
        self.labels = list(labels)
        self.outputs = len(self.labels)

    def arguments(self) -> dict[str, Any]:
        return {"labels": self.labels}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Mean binary cross-entropy over labels, examples and members."""
        logits = model(*self.inputs(batch))
        y = batch["y"].to(logits.dtype).expand(logits.shape)
        losses = F.binary_cross_entropy_with_logits(logits, y, reduction="none").mean(-1)
        mean = weighted_mean(losses, batch["weight"]) if "weight" in batch.fields else losses.mean()
        return mean, float(len(batch))

    def combine(self, outputs: Tensor, shares: ndarray | None = None) -> Tensor:
        """The log-odds of the mean probability of members. Shapes: (m, b, k) -> (b, k)."""
        weights = torch.as_tensor(np.full(len(outputs), 1 / len(outputs)) if shares is None else shares)[:, None, None]
        floor = torch.log(weights.clamp_min(1e-300))
        outputs = outputs.double()
        yes = torch.logsumexp(F.logsigmoid(outputs) + floor, 0)
        no = torch.logsumexp(F.logsigmoid(-outputs) + floor, 0)
        return yes - no

    def errors(self, outputs: Tensor, y: ndarray) -> ndarray:
        """Each member's probabilities minus the targets: (m, n, k)."""
        return (outputs.double().sigmoid() - torch.as_tensor(y)).numpy() / np.sqrt(self.outputs)

    def scores(self, prediction: ndarray, y: ndarray, temperature: float) -> ndarray:
        """The share of missed labels at each threshold: (n, t)."""
        return false_negative_rates(1 / (1 + np.exp(-np.clip(prediction, -700, 700))), y)

    def prediction_metrics(self, prediction: ndarray, y: ndarray, squared_error: float) -> dict[str, float]:
        z = torch.as_tensor(prediction)
        loss = F.binary_cross_entropy_with_logits(z, torch.as_tensor(y, dtype=z.dtype)).item()
        return {"brier": squared_error, "loss": loss, "f1": micro_f1(prediction > 0, y > 0)}

    def calibrate(self, validation: View, calibration: View, level: float) -> LabelTrust:  # pyright: ignore
        check_level(level)
        groups, first = validation.groups, validation.holdout()
        shares = variant_weights(self, first, groups, validation.variants, validation.linear)
        odds = holdout_prediction(self, first, groups, shares)
        scale = fit_scale(odds, first.y)
        trust = LabelTrust(level, scale, np.full(self.outputs, 0.5), np.zeros(len(THRESHOLDS)), 1, shares, groups)
        thresholds = f1_thresholds(trust.probabilities(odds), first.y)
        second = first if calibration is validation else calibration.holdout()
        chances = trust.probabilities(holdout_prediction(self, second, groups, shares))
        risk = false_negative_rates(chances, second.y).mean(0)
        return LabelTrust(level, scale, thresholds, risk, len(second.y), shares, groups)

    def trust(self, saved: Any) -> LabelTrust:  # pyright: ignore[reportIncompatibleMethodOverride]
        return LabelTrust.from_json(saved, self.outputs)

    def read_options(self, saved: Any) -> Any:
        return None

    def probabilities(self, outputs: Tensor, trust: LabelTrust) -> ndarray:
        """Calibrated probabilities of members' outputs. Shapes: (m, n, k) -> (n, k)."""
        return trust.probabilities(self.combined(outputs, trust))  # pyright: ignore

    def sets(self, outputs: Tensor, trust: LabelTrust, level: float | None = None) -> ndarray:
        """The labels of the set at this level, together with those that are predicted: booleans (n, k)."""
        level = trust.level if level is None else check_level(level)
        first = trust.probabilities(group_predictions(self, outputs, trust.groups, trust.shares)[0])
        return (first >= trust.threshold(level)) | (self.probabilities(outputs, trust) >= trust.thresholds)

    def names(self, chosen: ndarray) -> list[list[str]]:
        """The names of the labels of each row. Shapes: (n, k)."""
        return [[self.labels[code] for code in np.flatnonzero(row)] for row in chosen]

    def metrics(self, probabilities: ndarray, y: ndarray, predicted: ndarray) -> dict[str, Any]:
        """Micro and macro F1, mean average precision, share of rows with all labels right, wrong labels, log loss."""
        true = y > 0
        precisions = [metrics.average_precision(true[:, k], probabilities[:, k]) for k in range(self.outputs)]
        known = [value for value in precisions if value is not None]
        chances = np.clip(probabilities, 1e-12, 1 - 1e-12)
        each = [metrics.precision_recall_f1(true[:, k], predicted[:, k], True)[2] for k in range(self.outputs)]
        return {
            "f1": micro_f1(predicted, true),
            "macro_f1": float(np.mean(each)),
            "mean_average_precision": float(np.mean(known)) if known else None,
            "all_labels_right": float((predicted == true).all(1).mean()),
            "wrong_labels": float((predicted != true).mean()),
            "log_loss": float(-np.mean(np.where(true, np.log(chances), np.log1p(-chances)))),
        }

    def evaluate(self, view: View, trust: LabelTrust, level: float | None = None) -> dict[str, Any]:  # pyright: ignore
        level = trust.level if level is None else check_level(level)
        outputs, y = view.outputs().cpu(), view.targets()
        calibrated, raw = self.probabilities(outputs, trust), self._raw(outputs, trust)
        sets = self.sets(outputs, trust, level)
        sizes, bins = sets.sum(1), [binned(p.ravel(), y.ravel(), 15) for p in (raw, calibrated)]
        return {
            "rows": len(y),
            "metrics": self.metrics(calibrated, y, calibrated >= trust.thresholds),
            "ece": {"before": summarise(bins[0]), "after": summarise(bins[1])},
            "reliability": {"before": [vars(b) for b in bins[0]], "after": [vars(b) for b in bins[1]]},
            "conformal": {
                "level": level,
                "coverage": 1 - missed_share(sets, y > 0),
                "mean_size": float(sizes.mean()),
                "empty": 0,
                "sizes": {int(size): int((sizes == size).sum()) for size in np.unique(sizes)},
                "note": trust.note(level),
            },
        }

    def _raw(self, outputs: Tensor, trust: LabelTrust) -> ndarray:
        return 1 / (1 + np.exp(-np.clip(self.combined(outputs, trust), -700, 700)))  # pyright: ignore

    def predictions(self, view: View, trust: LabelTrust, level: float | None = None) -> pd.DataFrame:  # pyright: ignore
        """The predicted labels as one text ("red;blue"), the set, and the probability of each label."""
        outputs = view.outputs().cpu()
        chances = self.probabilities(outputs, trust)
        columns: dict[str, Any] = {
            "prediction": [";".join(names) for names in self.names(chances >= trust.thresholds)],
            "set": pd.Series(self.names(self.sets(outputs, trust, level)), dtype=object),
        }
        return pd.DataFrame(columns | {f"p({label})": chances[:, code] for code, label in enumerate(self.labels)})

    def answers(self, trust: LabelTrust, level: float) -> nn.Module | str:  # pyright: ignore
        return LabelAnswers(self, trust, level)

    def difference(self, table: pd.DataFrame, exported: Mapping[str, Any]) -> float:
        """Of probabilities; a label may be predicted, or in the set, for one of the two alone only at a tie."""
        chances = table[[f"p({label})" for label in self.labels]].to_numpy()
        largest = float(np.abs(chances - exported["probabilities"]).max(initial=0.0))
        sets = self.names(exported["set"]) == table["set"].tolist()
        named = [";".join(names) for names in self.names(exported["prediction"])] == table["prediction"].tolist()
        return largest if sets and named else float("inf")

    def row_scores(self, outputs: Tensor, y: Tensor, trust: LabelTrust) -> Tensor:
        """Minus the mean log loss of the labels of each row."""
        p = np.clip(self.probabilities(outputs, trust), 1e-12, 1 - 1e-12)
        return torch.as_tensor(np.where(y.numpy() > 0, np.log(p), np.log1p(-p)).mean(1))

    score_name = "log loss"

    def check_run(self, model: nn.Module, encoder: Any, trust: LabelTrust, folds: int) -> str | None:  # pyright: ignore
        members, variants = getattr(model, "members", 1), len(trust.shares)
        if trust.groups != folds or members % folds or (members // folds) % variants:
            return "trust.json does not fit the run's members: it is damaged."
        if self.labels != vars(encoder).get("classes"):
            return "preprocess.json has other labels than config.json: the two do not belong together."
        return None

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss", True), ("brier", "Brier score", False), ("f1", "F1", False)]

    def facts(self, view: View, trust: LabelTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:  # pyright: ignore
        """What was measured for each label, calibration, missed labels by level, and the surest mistakes."""
        outputs, y = view.outputs().cpu(), view.targets()
        chances, true = self.probabilities(outputs, trust), y > 0
        predicted = chances >= trust.thresholds
        metrics, conformal = record["metrics"], record["conformal"]
        gap = np.where(predicted != true, np.abs(chances - true), 0.0)
        worst = np.argsort(-gap.max(1), kind="stable")[:12]
        verdict = (
            f"F1 {percent(metrics['f1'])} over {self.outputs} labels of {record['rows']:,} unseen {dataset.noun}; all labels are right in "
            f"{percent(metrics['all_labels_right'])} of them. Sets at the {conformal['level']:.0%} level hold {percent(conformal['coverage'])} of the "
            f"labels, with {number(conformal['mean_size'], 3)} labels on average."
        )
        levels = [
            {"level": level, "coverage": 1 - missed_share(self.sets(outputs, trust, level), true)} for level in LEVELS
        ]
        return {
            "answers": f"any of {self.outputs:,} labels",
            "verdict": verdict,
            "labels": {
                "each": [self._label_facts(code, chances, true, predicted, trust) for code in range(self.outputs)],
                "risk": {"level": conformal["level"], "held": conformal["coverage"], "size": conformal["mean_size"], "levels": levels,
                         "note": conformal["note"]},
            },
            "reliability": record["reliability"] | {"ece_before": record["ece"]["before"], "ece_after": record["ece"]["after"]},
            "balance": {label: int(count) for label, count in zip(self.labels, dataset.y.sum(0), strict=True)},
            "mistakes": [
                {"true": ", ".join(self.names(true[i : i + 1])[0]) or "none",
                 "predicted": ", ".join(self.names(predicted[i : i + 1])[0]) or "none", "probability": float(gap[i].max())}
                | dataset.shown(int(view.part[i]))
                for i in worst if gap[i].any()
            ],
        }  # fmt: skip

    def _label_facts(
        self, code: int, chances: ndarray, true: ndarray, predicted: ndarray, trust: LabelTrust
    ) -> dict[str, Any]:
        precision, recall, f1 = metrics.precision_recall_f1(true[:, code], predicted[:, code], True)
        return {
            "label": self.labels[code], "share": float(true[:, code].mean()), "threshold": float(trust.thresholds[code]),
            "precision": precision, "recall": recall, "f1": f1,
            "average_precision": metrics.average_precision(true[:, code], chances[:, code]),
        }  # fmt: skip


def micro_f1(predicted: ndarray, true: ndarray) -> float:
    """F1 of all labels of all rows together; 0 where there is no label at all. Shapes: (n, k), (n, k).

    >>> micro_f1(np.array([[True, False]]), np.array([[True, True]])).__round__(3)
    0.667
    """
    total = predicted.sum() + true.sum()
    return float(2 * (predicted & true).sum() / total) if total else 0.0


def missed_share(sets: ndarray, true: ndarray) -> float:
    """The mean share of a row's labels that its set does not hold. Shapes: (n, k), (n, k)."""
    return float(((true & ~sets).sum(1) / np.maximum(true.sum(1), 1)).mean())
