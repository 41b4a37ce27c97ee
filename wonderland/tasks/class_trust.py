"""Options of trust for classes: calibrators, other conformal sets, decisions by thresholds or costs, abstention."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError, permutation
from wonderland.tasks import metrics
from wonderland.tasks.wanted import Wanted, read_cost
from wonderland.trust.choose_calibrator import choose_calibrator, log_loss
from wonderland.trust.conformal_sets import ConformalSets, conformal_sets
from wonderland.trust.decisions import Abstention, abstain, cheapest
from wonderland.trust.scaling import Calibrator
from wonderland.trust.temperature import log_softmax

ROWS_TO_CHOOSE = 1000  # with fewer rows the choice among calibrators is itself too noisy: temperature scaling is taken
GAIN = 0.005  # of the log loss, relative: what another calibrator has to gain over the temperature
BY_CELLS = ("class", "group", "aps", "raps")  # forms of conformal prediction that have calibrated sets of their own
METRICS = {
    "accuracy": metrics.accuracy,
    "balanced_accuracy": metrics.balanced_accuracy,
    "f1": metrics.macro_f1,
}
ASK = "ask a person"


@dataclass(frozen=True)
class ClassOptions:
    """What was fitted for the options of trust; each part is None where it was not asked for.

    `weights` (c,) multiply the probabilities before the largest is taken: they stand for thresholds, of any number of classes.
    `sets` has calibrated sets for each group of members.
    """

    calibrator: Calibrator | None = None
    cross: bool = False
    sets: tuple[ConformalSets, ...] = ()
    group: str | None = None
    metric: str | None = None
    weights: ndarray | None = None
    cost: ndarray | None = None
    actions: tuple[str, ...] = ()
    abstention: Abstention | None = None
    risk: float | None = None
    uncertainty: str | None = None

    def decide(self, probabilities: ndarray) -> ndarray:
        """The predicted class of each row. Shapes: (n, c) -> (n,)."""
        return (probabilities if self.weights is None else probabilities * self.weights).argmax(1)

    def note(self, level: float, classes: list[str]) -> str:
        """The classes or groups that have too few calibration rows for this level, or ""."""
        if not self.sets:
            return ""
        first = self.sets[0]
        names = sorted({name for sets in self.sets for name in sets.cells}, key=lambda name: (len(name), name))
        if first.by == "class":
            names = [str(code) for code in range(len(classes))]
        needed = math.ceil(1 / (1 - level) - 1e-9) - 1
        few = [name for name in names if sum(len(sets.cells.get(name, ())) for sets in self.sets) < needed]
        if not few or not first.by:
            return first.note(level) if few and len(self.sets) == 1 else ""
        words = [classes[int(name)] if first.by == "class" else name for name in few]
        shown = ", ".join(words[:5]) + (", ..." if len(words) > 5 else "")
        if first.by == "class":
            kept = f"a set always holds {'it' if len(few) == 1 else 'them'}"
            return (
                f"Fewer than the {needed} calibration rows that a level of {level:g} needs have class {shown}: {kept}."
            )
        return (
            f"Fewer than the {needed} calibration rows that a level of {level:g} needs have {self.group} {shown}: sets hold "
            "every class there."
        )

    def columns(self, probabilities: ndarray, prediction: list[str]) -> dict[str, Any]:
        """Columns of predictions: the cheapest action, and the answer or a person."""
        columns: dict[str, Any] = {}
        if self.cost is not None:
            columns["decision"] = [self.actions[action] for action in cheapest(probabilities, self.cost)]
        if self.abstention is not None:
            answered = self.abstention.answers(probabilities.max(1))
            columns["answer"] = [name if sure else ASK for name, sure in zip(prediction, answered, strict=True)]
        return columns

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, without what was not asked for."""
        rule = self.abstention
        values = {
            "calibrator": None if self.calibrator is None else self.calibrator.to_json(),
            "cross": self.cross or None,
            "sets": [sets.to_json() for sets in self.sets] or None,
            "group": self.group,
            "metric": self.metric,
            "weights": None if self.weights is None else self.weights.tolist(),
            "cost": None if self.cost is None else self.cost.tolist(),
            "actions": list(self.actions) or None,
            "abstention": None if rule is None else {"threshold": rule.threshold if np.isfinite(rule.threshold) else None,
                                                     "coverage": rule.coverage, "risk": rule.risk, "bound": rule.bound},
            "risk": self.risk,
            "uncertainty": self.uncertainty,
        }  # fmt: skip
        return {name: value for name, value in values.items() if value is not None}

    @staticmethod
    def from_json(saved: Any, classes: int) -> "ClassOptions":
        """From `to_json`; anything else is refused."""
        try:
            known = set(ClassOptions.__dataclass_fields__)
            if not isinstance(saved, dict) or set(saved) - known:
                raise ValueError
            weights, cost = (
                None if saved.get(name) is None else np.asarray(saved[name], np.float64) for name in ("weights", "cost")
            )
            actions = tuple(str(name) for name in saved.get("actions", ()))
            if weights is not None and (weights.shape != (classes,) or not (weights > 0).all()):
                raise ValueError
            if cost is not None and (cost.shape != (classes, len(actions)) or not np.isfinite(cost).all()):
                raise ValueError
            rule = saved.get("abstention")
            if rule is not None:
                threshold = np.inf if rule["threshold"] is None else float(rule["threshold"])
                rule = Abstention(threshold, *(float(rule[name]) for name in ("coverage", "risk", "bound")))
            sets = tuple(ConformalSets.from_json(value) for value in saved.get("sets") or ())
            if any(own.classes != classes or own.by != sets[0].by for own in sets):
                raise ValueError
            text = {name: saved.get(name) for name in ("group", "metric", "uncertainty")}
            if not all(value is None or isinstance(value, str) for value in text.values()):
                raise ValueError
            calibrator = None if saved.get("calibrator") is None else Calibrator.from_json(saved["calibrator"])
            if calibrator is not None and calibrator(np.zeros((1, classes))).shape != (1, classes):
                raise ValueError
            risk = None if saved.get("risk") is None else float(saved["risk"])
        except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
            raise WonderlandError("trust.json has options of trust that cannot be read: it is damaged.") from error
        return ClassOptions(
            calibrator, bool(saved.get("cross")), sets, text["group"], text["metric"], weights, cost, actions, rule, risk,
            text["uncertainty"],
        )  # fmt: skip


def better_calibrator(logits: ndarray, y: ndarray, temperature: float) -> Calibrator | None:
    """The calibrator with the smallest cross-validated log loss, if it is clearly better than the temperature, else None.

    Shapes: logits (n, c), y (n,), of validation rows.
    """
    if len(y) < ROWS_TO_CHOOSE or len(np.unique(y)) < logits.shape[1]:
        return None
    chosen = choose_calibrator(logits, y)
    if chosen.calibrator.method in ("none", "temperature"):
        return None
    usual = chosen.losses.get("temperature", log_loss(np.exp(log_softmax(logits / temperature)), y))
    return chosen.calibrator if chosen.losses[chosen.calibrator.method] < usual * (1 - GAIN) else None


def tuned_weights(probabilities: ndarray, y: ndarray, metric: str) -> ndarray:
    """Weights of classes under which the predicted classes have the best metric on these rows. Shapes: (n, c), (n,) -> (c,).

    Class by class, each weight is tried where the order of a row's classes changes; the search repeats while it gains.
    Of equally good weights the one nearest to no change is taken.
    """
    measure = METRICS[metric]
    weights = np.ones(probabilities.shape[1])
    best = measure(y, probabilities.argmax(1))
    for _ in range(5):
        before = best
        for k in range(len(weights)) if len(weights) > 2 else [1]:
            others = np.delete(probabilities * weights, k, 1).max(1)
            turns = np.unique(others / np.maximum(probabilities[:, k], 1e-12))
            turns = turns[(turns > 1e-4) & (turns < 1e4)]
            middles = np.sqrt(turns[1:] * turns[:-1])
            tried = middles[:: max(1, len(middles) // 200)]
            for weight in sorted(tried, key=lambda value: abs(np.log(value))):
                moved = weights.copy()
                moved[k] = weight
                value = measure(y, (probabilities * moved).argmax(1))
                if value > best + 1e-12:
                    best, weights = value, moved
        if best <= before + 1e-12:
            break
    return weights / weights.max()


def fit_sets(
    method: str, probabilities: ndarray, y: ndarray, fold: ndarray, groups: ndarray | None, level: float
) -> tuple[ConformalSets, ...]:
    """Calibrated sets for each fold, whose rows its own group of members did not learn from.

    The price of RAPS is tuned on a fifth of all rows, which are then left out. Shapes: (n, c), (n,), (n,), (n,).
    """
    used, settings = np.ones(len(y), bool), {}
    if method == "raps":
        used[permutation(0, 0, len(y))[: len(y) // 5]] = False
        tuned = conformal_sets(probabilities, y, score="raps", level=level)
        settings = {"penalty": tuned.penalty, "rank": tuned.rank}
    score, by = (method, "") if method in ("aps", "raps") else ("lac", method)
    return tuple(
        conformal_sets(
            probabilities[rows], y[rows], score=score, by=by, groups=None if groups is None else groups[rows], level=level,
            **settings,
        )
        for rows in (np.flatnonzero(used & (fold == index)) for index in range(int(fold.max()) + 1))
    )  # fmt: skip


def fit_options(
    wanted: Wanted,
    classes: list[str],
    calibrator: Calibrator | None,
    validation: tuple[ndarray, ndarray],
    calibration: tuple[ndarray, ndarray],
    fold: ndarray,
    groups: ndarray | None,
    level: float,
) -> ClassOptions:
    """Fit what was asked for: thresholds on validation rows, sets and the abstention rule on calibration rows.

    `validation` and `calibration` are probabilities (n, c) and targets (n,); `fold` and `groups` are (n,), of calibration rows.
    """
    sets = fit_sets(wanted.method, *calibration, fold, groups, level) if wanted.method in BY_CELLS else ()
    weights = None if wanted.metric is None else tuned_weights(*validation, wanted.metric)
    cost, actions = (None, []) if wanted.cost is None else read_cost(wanted.cost, classes)
    fitted = ClassOptions(
        calibrator, wanted.method == "cross", sets, wanted.group, wanted.metric, weights, cost, tuple(actions),
        uncertainty=wanted.uncertainty,
    )  # fmt: skip
    if wanted.abstain is None:
        return fitted
    p, y = calibration
    rule = abstain(p.max(1), (fitted.decide(p) != y).astype(float), wanted.abstain)
    return ClassOptions(**{**vars(fitted), "abstention": rule, "risk": wanted.abstain})
