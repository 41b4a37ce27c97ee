"""Tuners: pure functions of the trials so far, so that a study that was killed goes on as if it had not been."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wonderland.core import WonderlandError
from wonderland.search.space import Space
from wonderland.search.trial import Trial


class Tuner(ABC):
    """Decides what is run next.

    `shares` are the rungs: the share of a whole training after which a trial is measured. `next` names a trial and a rung;
    a trial that does not exist yet gets its settings from `settings`, a function of the trials so far, the seed and its number.
    """

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of a whole training at each rung; the last is 1."""
        return (1.0,)

    def limit(self, space: Space, trials: int) -> int:
        """How many trials there will be."""
        return trials

    @abstractmethod
    def next(self, trials: Sequence[Trial], limit: int) -> tuple[int, int] | None:
        """The number of a trial and the rung to bring it to; None if there is nothing to start now."""

    @abstractmethod
    def settings(self, space: Space, trials: Sequence[Trial], number: int, seed: int) -> dict[str, Any]:
        """The settings of a new trial."""


def next_number(trials: Sequence[Trial], limit: int) -> tuple[int, int] | None:
    """The next new trial at the first rung."""
    return (len(trials), 0) if len(trials) < limit else None


@dataclass(frozen=True)
class RandomSearch(Tuner):
    """Settings at random, each a function of (seed, number). Book: D2L 19.2. Paper: Bergstra and Bengio, 2012."""

    def next(self, trials: Sequence[Trial], limit: int) -> tuple[int, int] | None:
        return next_number(trials, limit)

    def settings(self, space: Space, trials: Sequence[Trial], number: int, seed: int) -> dict[str, Any]:
        return space.sample(seed, number)


@dataclass(frozen=True)
class GridSearch(Tuner):
    """Every combination of `points` values of each number and all choices, in order. Book: D2L 19.2."""

    points: int = 3

    def __post_init__(self):
        if self.points < 1:
            raise WonderlandError(f"A grid takes at least 1 point of each number, not {self.points}.")

    def limit(self, space: Space, trials: int) -> int:
        return min(trials, len(space.grid(self.points)))

    def next(self, trials: Sequence[Trial], limit: int) -> tuple[int, int] | None:
        return next_number(trials, limit)

    def settings(self, space: Space, trials: Sequence[Trial], number: int, seed: int) -> dict[str, Any]:
        return space.grid(self.points)[number]
