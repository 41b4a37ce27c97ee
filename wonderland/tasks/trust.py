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
from wonderland.trust.weights import simplex, spread


@dataclass(frozen=True)
class Held:
    """Rows held out of learning: outputs of each member (m, n, c), the group that may judge each row (n,), targets (n,)."""

    outputs: Tensor
    group: ndarray
    y: ndarray


@dataclass(frozen=True)
class Trust:
    """Shares of members, a temperature and calibration scores, and the level of sets and intervals unless asked otherwise.

    Members form `groups` of equal size, those of a group learned from the same rows; within a group kinds of members take
    turns, and `shares` says how far each kind is believed.
    """

    task: Task
    temperature: float
    scores: Scores
    level: float
    shares: ndarray

    @staticmethod
    def fit(task: Task, validation: Held, calibration: Held, groups: int, level: float, kinds: int = 1) -> "Trust":
        """Shares and temperature from the validation rows, scores from the calibration rows alone."""
        check_level(level)
        shares = believed(task, validation, groups, kinds)
        temperature = 1.0
        if isinstance(task, Classification):
            temperature = fit_temperature(judged(task, validation, groups, shares), validation.y)
            # One group is judged, but all of them answer: their mean is softer already. On six real sets half the
            # logarithm of the temperature gave the best log loss.
            temperature = temperature**0.5 if groups > 1 else temperature
        found = judged(task, calibration, groups, shares)
        if isinstance(task, Classification):
            scores = misfit(found / temperature)[np.arange(len(found)), calibration.y]
        else:
            scores = np.abs(calibration.y - task.original(found[:, 0]))
        return Trust(task, temperature, Scores.of(scores, calibration.group, groups), level, shares)

    @property
    def groups(self) -> int:
        """How many groups of members there are."""
        return len(self.scores.groups)

    def log_probabilities(self, outputs: Tensor, *, calibrated: bool = True) -> ndarray:
        """Members' logits (m, n, c) as one calibrated log-probability for each class (n, c)."""
        found = self.task.combine(outputs, spread(self.shares, len(outputs))).numpy()
        return log_softmax(found / self.temperature if calibrated else found)

    def values(self, outputs: Tensor) -> ndarray:
        """Members' outputs (m, n, 1) as numbers in the target's own scale (n,)."""
        assert isinstance(self.task, Regression)
        return self.task.original(self.task.combine(outputs, spread(self.shares, len(outputs)))[:, 0].numpy())

    def sets(self, outputs: Tensor, level: float | None = None) -> ndarray:
        """Which classes are plausible, (n, c)."""
        candidates = np.stack(
            [misfit(found / self.temperature) for found in _grouped(self.task, outputs, self.groups, self.shares)]
        )
        return self.scores.sets(candidates, self.level if level is None else level)

    def intervals(self, outputs: Tensor, level: float | None = None) -> tuple[ndarray, ndarray]:
        """Where the number lies, low and high ends (n,)."""
        assert isinstance(self.task, Regression)
        centres = np.stack(
            [self.task.original(found[:, 0]) for found in _grouped(self.task, outputs, self.groups, self.shares)]
        )
        return self.scores.intervals(centres, self.level if level is None else level)

    def measure(self, outputs: Tensor, y: ndarray, level: float | None = None) -> dict[str, Any]:
        """Everything that can be said of predictions whose truth is known."""
        level = self.level if level is None else check_level(level)
        if isinstance(self.task, Classification):
            calibrated = self.log_probabilities(outputs)
            raw = self.log_probabilities(outputs, calibrated=False)
            sets = self.sets(outputs, level)
            common = np.bincount(y, minlength=self.task.outputs)
            return {
                "rows": len(y),
                "most_frequent": {"class": self.task.classes[common.argmax()], "share": float(common.max() / len(y))},
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
                    "empty": int((sets.sum(1) == 0).sum()),
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
        return {
            "temperature": self.temperature,
            "level": self.level,
            "shares": self.shares.tolist(),
            "scores": self.scores.to_json(),
        }

    @staticmethod
    def from_json(task: Task, value: Any) -> "Trust":
        """Back from `to_json`; damaged content is refused."""
        try:
            temperature, level = float(value["temperature"]), check_level(float(value["level"]))
            scores, shares = value["scores"], np.asarray(value["shares"], np.float64)
            if (
                not 1e-3 < temperature < 1e6
                or shares.ndim != 1
                or not (shares >= 0).all()
                or not 0.99 < shares.sum() < 1.01
            ):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WonderlandError(
                "trust.json lacks its temperature, level, shares or scores: it is damaged."
            ) from error
        return Trust(task, temperature, Scores.from_json(scores), level, shares)


def believed(task: Task, held: Held, groups: int, kinds: int) -> ndarray:
    """How far each kind of member is to be believed: (kinds,)."""
    if kinds == 1:
        return np.ones(1)
    errors = task.errors(_own(held, groups), held.y)
    return simplex(errors.reshape(-1, kinds, *errors.shape[1:]).mean(0).swapaxes(0, 1))


def judged(task: Task, held: Held, groups: int, shares: ndarray) -> ndarray:
    """For each row, the prediction of the group that never saw it: (n, c)."""
    own = _own(held, groups)
    return task.combine(own, spread(shares, len(own))).numpy()


def _own(held: Held, groups: int) -> Tensor:
    """For each row, the outputs of the members of its own group: (members of a group, n, c)."""
    outputs = held.outputs.unflatten(0, (groups, -1))
    return outputs[torch.as_tensor(held.group), :, torch.arange(len(held.group))].transpose(0, 1)


def _grouped(task: Task, outputs: Tensor, groups: int, shares: ndarray) -> list[ndarray]:
    """Members (m, n, c) as one prediction (n, c) of each group."""
    some = outputs.unflatten(0, (groups, -1))
    return [task.combine(members, spread(shares, len(members))).numpy() for members in some]
