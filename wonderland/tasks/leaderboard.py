"""The leaderboard of a run: simple methods measured on its test rows, beside the run itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.tasks import metrics
from wonderland.trust.paired import Difference, paired_difference, paired_rmse_difference

OURS = "this model"


@dataclass(frozen=True)
class Baseline:
    """A simple method: `predict` fits it and predicts the test rows, log-probabilities (n, c) of classes or numbers (n,).

    It is only measured, and not saved.
    """

    name: str
    predict: Callable[[], ndarray]


def class_scores(log_probabilities: ndarray, y: ndarray) -> dict[str, ndarray]:
    """The scores of each row, whose means are compared: {"accuracy", "log_loss"}, from (n, c) and class codes (n,)."""
    right = (log_probabilities.argmax(1) == y).astype(np.float64)
    true = np.maximum(log_probabilities, np.log(1e-15))[np.arange(len(y)), y]
    return {"accuracy": right, "log_loss": -true}


def class_row(name: str, predicted: ndarray, ours: ndarray | None, y: ndarray) -> dict[str, Any]:
    """One row of the leaderboard of classes; the difference is that of the run minus this method."""
    scores = class_scores(predicted, y)
    row: dict[str, Any] = {"name": name, "metrics": {key: float(values.mean()) for key, values in scores.items()}}
    row["metrics"]["auroc"] = metrics.macro_auroc(y, np.exp(predicted))
    if ours is not None:
        own = class_scores(ours, y)
        row["differences"] = {key: vars(paired_difference(own[key], values)) for key, values in scores.items()}
    return row


def number_row(name: str, predicted: ndarray, ours: ndarray | None, y: ndarray) -> dict[str, Any]:
    """One row of the leaderboard of numbers; the difference is that of the run minus this method."""
    row: dict[str, Any] = {
        "name": name,
        "metrics": {"rmse": metrics.rmse(y, predicted), "mae": metrics.mae(y, predicted)},
    }
    if ours is not None:
        row["differences"] = {
            "rmse": vars(paired_rmse_difference(ours - y, predicted - y)),
            "mae": vars(paired_difference(np.abs(ours - y), np.abs(predicted - y))),
        }
    return row


def compared(rows: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """The methods that are "better" than the run, and those that are "level" with it.

    By 95 % intervals of the differences: a better one is ahead in some measure and behind in none; one that is behind in some
    measure and ahead in none is neither; all others are level.

    >>> tie = {"value": 0.01, "low": -0.01, "high": 0.03}
    >>> compared([{"name": "this model"}, {"name": "linear model", "differences": {"accuracy": tie}}])
    {'better': [], 'level': ['linear model']}
    """
    groups: dict[str, list[str]] = {"better": [], "level": []}
    for row in rows:
        gaps = {name: Difference(**gap) for name, gap in row.get("differences", {}).items()}
        ours = any(gap.low > 0 if name == "accuracy" else gap.high < 0 for name, gap in gaps.items())
        its = any(gap.high < 0 if name == "accuracy" else gap.low > 0 for name, gap in gaps.items())
        if gaps and ours == its:
            groups["level"].append(row["name"])
        elif its:
            groups["better"].append(row["name"])
    return groups


def sentence(rows: Sequence[dict[str, Any]], count: int) -> str:
    """What the leaderboard says, in a sentence; empty where the run is better than every method."""
    groups, clauses = compared(rows), []
    if groups["better"]:
        clauses.append(
            f"{_listed(groups['better'])} {'is' if len(groups['better']) == 1 else 'are'} better than this model"
        )
    if groups["level"]:
        clauses.append(
            f"{_listed(groups['level'])} {'is' if len(groups['level']) == 1 else 'are'} as good as this model"
        )
    if not clauses:
        return ""
    return (
        f"On these {count:,} test rows {' and '.join(clauses)}, as far as they can tell (95 % intervals of the paired difference): "
        "take the simplest that is good enough, or test on more rows."
    )


def _listed(names: list[str]) -> str:
    plain = [name if name in ("boosting", "majority") else f"the {name}" for name in names]
    return " and ".join(filter(None, (", ".join(plain[:-1]), plain[-1])))
