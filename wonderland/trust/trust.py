"""Trust: what a model's numbers are worth, measured on rows it did not learn from, and applied to every prediction."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks import Classification, Regression, Task
from wonderland.trust.calibration import ece, fit_temperature, log_softmax, reliability
from wonderland.trust.conformal import Scores, check_level, misfit


@dataclass(frozen=True)
class Held:
    """Rows held out of learning: outputs of each member (m, n, c), the group that may judge each row (n,), targets (n,)."""

    outputs: Tensor
    group: ndarray
    y: ndarray


@dataclass(frozen=True)
class Trust:
    """A temperature and calibration scores, with the level that sets and intervals have unless asked otherwise.

    `groups` says how many groups the members form, in equal shares: members of a group learned from the same rows.
    """

    task: Task
    temperature: float
    scores: Scores
    level: float

    @staticmethod
    def fit(task: Task, validation: Held, calibration: Held, groups: int, level: float) -> "Trust":
        """Temperature from the validation rows, scores from the calibration rows alone."""
        check_level(level)
        temperature = 1.0
        if isinstance(task, Classification):
            temperature = fit_temperature(_judged(task, validation, groups), validation.y)

        found = _judged(task, calibration, groups)
        if isinstance(task, Classification):
            scores = misfit(found / temperature)[np.arange(len(found)), calibration.y]
        else:
            scores = np.abs(calibration.y - task.original(found[:, 0]))
        return Trust(task, temperature, Scores.of(scores, calibration.group, groups), level)

    @property
    def groups(self) -> int:
        """How many groups of members there are."""
        return len(self.scores.groups)

    def log_probabilities(self, outputs: Tensor, *, calibrated: bool = True) -> ndarray:
        """Members' logits (m, n, c) as one calibrated log-probability for each class (n, c)."""
        found = self.task.combine(outputs).numpy()
        return log_softmax(found / self.temperature if calibrated else found)

    def values(self, outputs: Tensor) -> ndarray:
        """Members' outputs (m, n, 1) as numbers in the target's own scale (n,)."""
        assert isinstance(self.task, Regression)
        return self.task.original(self.task.combine(outputs)[:, 0].numpy())

    def sets(self, outputs: Tensor, level: float | None = None) -> ndarray:
        """Which classes are plausible, (n, c)."""
        candidates = np.stack([misfit(found / self.temperature) for found in _grouped(self.task, outputs, self.groups)])
        return self.scores.sets(candidates, self.level if level is None else level)

    def intervals(self, outputs: Tensor, level: float | None = None) -> tuple[ndarray, ndarray]:
        """Where the number lies, low and high ends (n,)."""
        assert isinstance(self.task, Regression)
        centres = np.stack([self.task.original(found[:, 0]) for found in _grouped(self.task, outputs, self.groups)])
        return self.scores.intervals(centres, self.level if level is None else level)

    def measure(self, outputs: Tensor, y: ndarray, level: float | None = None) -> dict[str, Any]:
        """Everything that can be said of predictions whose truth is known."""
        level = self.level if level is None else check_level(level)
        if isinstance(self.task, Classification):
            calibrated = self.log_probabilities(outputs)
            raw = self.log_probabilities(outputs, calibrated=False)
            sets = self.sets(outputs, level)
            return {
                "rows": len(y),
                "metrics": self.task.metrics(calibrated, y),
                "ece": {"before": ece(np.exp(raw), y), "after": ece(np.exp(calibrated), y)},
                "reliability": {
                    "before": [vars(b) for b in reliability(np.exp(raw), y)],
                    "after": [vars(b) for b in reliability(np.exp(calibrated), y)],
                },
                "conformal": {
                    "level": level,
                    "coverage": float(sets[np.arange(len(y)), y].mean()),
                    "mean_size": float(sets.sum(1).mean()),
                    "sizes": {int(size): int((sets.sum(1) == size).sum()) for size in np.unique(sets.sum(1))},
                    "note": self.scores.note(level),
                },
            }
        values = self.values(outputs)
        low, high = self.intervals(outputs, level)
        return {
            "rows": len(y),
            "metrics": self.task.metrics(values, y),
            "conformal": {
                "level": level,
                "coverage": float(((low <= y) & (y <= high)).mean()),
                "mean_width": float(np.mean(high - low)) if np.isfinite(high - low).all() else None,
                "note": self.scores.note(level),
            },
        }

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"temperature": self.temperature, "level": self.level, "scores": self.scores.to_json()}

    @staticmethod
    def from_json(task: Task, value: Any) -> "Trust":
        """Back from `to_json`; damaged content is refused."""
        try:
            temperature, level = float(value["temperature"]), check_level(float(value["level"]))
            scores = value["scores"]
            if not 0 < temperature < 1e6:
                raise ValueError
        except (KeyError, TypeError, ValueError) as error:
            raise WonderlandError("trust.json lacks its temperature, level or scores: it is damaged.") from error
        return Trust(task, temperature, Scores.from_json(scores), level)


def _grouped(task: Task, outputs: Tensor, groups: int) -> list[ndarray]:
    """Members (m, n, c) as one prediction (n, c) of each group."""
    return [task.combine(some).numpy() for some in outputs.unflatten(0, (groups, -1))]


def _judged(task: Task, held: Held, groups: int) -> ndarray:
    """For each row, the prediction of the group that never saw it: (n, c)."""
    found = torch.as_tensor(np.stack(_grouped(task, held.outputs, groups)))
    return found[torch.as_tensor(held.group), torch.arange(len(held.group))].numpy()
