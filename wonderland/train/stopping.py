"""Early stopping: rules that decide from the scores so far. They keep no state, so a resumed training stops at the same step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from wonderland.core import WonderlandError


@dataclass(frozen=True)
class StoppingRule:
    """A rule of early stopping: call `stops(scores)` after each evaluation. Higher scores are better unless `mode` is "min".

    An evaluation that gives NaN counts as worse than all others.
    """

    patience: int
    mode: str = "max"

    def __post_init__(self):
        if isinstance(self.patience, bool) or not isinstance(self.patience, int) or self.patience < 1:
            raise WonderlandError(
                f"{type(self).__name__} takes a patience of at least 1 evaluation, not {self.patience!r}."
            )
        if self.mode not in ("max", "min"):
            raise WonderlandError(
                f"{type(self).__name__} takes a mode of 'max' (scores) or 'min' (losses), not {self.mode!r}."
            )

    def stops(self, scores: Sequence[float]) -> bool:
        """Whether to stop after the last of these scores."""
        raise NotImplementedError

    def first(self, scores: Sequence[float]) -> int | None:
        """The evaluation, counted from 0, after which the rule stops; None if it never does."""
        return next((t for t in range(len(scores)) if self.stops(scores[: t + 1])), None)

    def best(self, scores: Sequence[float]) -> int:
        """The evaluation whose weights to restore: the first of the best scores, for every rule."""
        if not scores:
            raise WonderlandError("There is no best evaluation before the first: give at least one score.")
        values = self._values(scores)
        return values.index(max(values))

    def _values(self, scores: Sequence[float]) -> list[float]:
        """Scores of which higher is better, with NaN as the worst."""
        sign = 1 if self.mode == "max" else -1
        return [float("-inf") if isnan(score) else sign * float(score) for score in scores]


@dataclass(frozen=True)
class Patience(StoppingRule):
    r"""Stop after `patience` evaluations without a new best, one that is better by more than `least`.

    .. math:: t - \arg\max_{i \le t} a_i \ge k

    The usual form of early stopping. Book: Alice 9.2.2.

    >>> Patience(2).first([0.5, 0.9, 0.8, 0.85, 0.86, 0.87])
    3
    """

    least: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if not self.least >= 0:
            raise WonderlandError(f"Patience takes a least improvement of at least 0, not {self.least!r}.")

    def stops(self, scores: Sequence[float]) -> bool:
        top, worse = float("-inf"), 0
        for value in self._values(scores):
            if value > top + self.least:
                top, worse = value, 0
            else:
                worse += 1
        return worse >= self.patience


@dataclass(frozen=True)
class BookRule(StoppingRule):
    r"""Stop when a score is no better than each of the `patience` scores before it.

    .. math:: a_t \le a_i \quad \text{for all } i = t - k, \dots, t - 1

    The rule as the book states it, which differs from `Patience`: scores that rise slowly below an earlier best never stop it.
    Book: Alice 9.2.2.

    >>> print(BookRule(2).first([0.5, 0.9, 0.8, 0.85, 0.86, 0.87]))
    None
    """

    def stops(self, scores: Sequence[float]) -> bool:
        values = self._values(scores)
        if len(values) <= self.patience:
            return False
        return all(values[-1] <= earlier for earlier in values[-1 - self.patience : -1])


@dataclass(frozen=True)
class Flat:
    r"""Stop when the loss no longer changes.

    .. math:: |L_t - L_{t-1}|^2 \le \epsilon

    Book: Alice 9.2.2.

    >>> Flat(1e-4).first([1.0, 0.5, 0.499])
    2
    """

    epsilon: float

    def __post_init__(self):
        if not self.epsilon > 0:
            raise WonderlandError(f"Flat takes an epsilon above 0, not {self.epsilon!r}.")

    def stops(self, scores: Sequence[float]) -> bool:
        """Whether to stop after the last of these losses."""
        return len(scores) > 1 and (scores[-1] - scores[-2]) ** 2 <= self.epsilon

    def first(self, scores: Sequence[float]) -> int | None:
        """The evaluation, counted from 0, after which the rule stops; None if it never does."""
        return next((t for t in range(len(scores)) if self.stops(scores[: t + 1])), None)


@dataclass(frozen=True)
class Rounds:
    r"""Train on while it pays: rounds of :math:`S, 2S, 4S, \dots` steps, each with the whole schedule.

    Another round follows where the watched measure fell by more than the share `gain` in the second half of the last one, and was
    better at its end than at the end of the round before by half of that. Data that are learned in one round cost nothing more.

    >>> Rounds(steps=100, extensions=2).ends
    (100, 300, 700)
    >>> position(350, 100)
    (50, 400)
    """

    steps: int
    extensions: int
    gain: float = 0.08

    @property
    def ends(self) -> tuple[int, ...]:
        """The steps at which rounds end."""
        return tuple(self.steps * (2 ** (number + 1) - 1) for number in range(self.extensions + 1))

    def stops(self, rows: Sequence[Mapping[str, Any]], watch: str) -> bool:
        """Whether training ends after these records, the last of them at the end of a round. Lower values are better."""
        end = rows[-1]["step"]
        if end not in self.ends or end == self.ends[-1]:
            return end in self.ends
        place = self.ends.index(end)
        begin = 0 if place == 0 else self.ends[place - 1]
        values = {row["step"]: row[watch] for row in rows if watch in row}
        halves = [value for step, value in values.items() if begin < step <= (begin + end) / 2]
        last = values[end]
        if not halves or not halves[-1] - last > self.gain * abs(last):
            return True
        return begin > 0 and not values[begin] - last > self.gain / 2 * abs(last)


def position(step: int, steps: int) -> tuple[int, int]:
    """The step within its round, and the length of that round, where the first has `steps`."""
    while step >= steps:
        step, steps = step - steps, 2 * steps
    return step, steps
