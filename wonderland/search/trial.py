"""Trials: settings, and what was measured with them at each rung."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Trial:
    """One point of the space. `scores[k]` is what was measured at the end of rung k; smaller is better.

    `running` is the rung that a worker is at; None if no worker has it. `place` is where its weights are, in a study of several places;
    `weights` is what a folder that all of them share holds of it; `restarts` counts how often its weights were lost with a machine.
    `cost` is a second objective, such as parameters, where the study has one.
    """

    number: int
    settings: dict[str, Any]
    scores: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    seconds: float = 0.0
    curve: list[tuple[float, float]] = field(default_factory=list)
    failed: str | None = None
    running: int | None = None
    worker: str | None = None
    place: str | None = None
    weights: str | None = None
    restarts: int = 0
    cost: float | None = None

    @property
    def rung(self) -> int:
        """The last rung that was measured; -1 before the first."""
        return len(self.scores) - 1

    @property
    def score(self) -> float:
        """The score at the last rung; infinite before the first and where the trial failed."""
        return math.inf if self.failed is not None or not self.scores else self.scores[-1]

    def at(self, rung: int) -> float | None:
        """The score at a rung, infinite where the trial failed on the way; None if it has not been there."""
        if rung < len(self.scores):
            return self.scores[rung]
        return math.inf if self.failed is not None and rung == len(self.scores) else None

    def started(self, rung: int) -> bool:
        """Whether the trial is or was at this rung."""
        return self.at(rung) is not None or (self.running is not None and self.running >= rung)

    @property
    def state(self) -> str:
        """In a word."""
        if self.failed is not None:
            return "failed"
        return "running" if self.running is not None else "measured"


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """The best trial of those at the highest rung that any has reached; of equal ones the first.

    >>> best_trial([Trial(0, {}, [0.5]), Trial(1, {}, [0.4, 0.3]), Trial(2, {}, [0.1])]).number
    1
    """
    sound = [trial for trial in trials if math.isfinite(trial.score)]
    top = max((trial.rung for trial in sound), default=-1)
    return min((trial for trial in sound if trial.rung == top), key=lambda t: (t.score, t.number), default=None)
