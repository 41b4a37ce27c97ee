"""Successive halving, with and without waiting: bad trials are paused early, good ones go on from where they were."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wonderland.core import WonderlandError
from wonderland.search.space import Space
from wonderland.search.trial import Trial
from wonderland.search.tuner import Tuner, next_number


@dataclass(frozen=True)
class Rungs(Tuner):
    """What tuners with rungs share: rung k of K ends after a share :math:`\\eta^{k - K + 1}` of a training."""

    eta: int = 3
    rungs: int = 3

    def __post_init__(self):
        if not 2 <= self.eta <= 100:
            raise WonderlandError(f"eta is the factor between rungs, from 2 to 100, not {self.eta}.")
        if not 1 <= self.rungs <= 10:
            raise WonderlandError(f"There are between 1 and 10 rungs, not {self.rungs}.")

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple(float(self.eta) ** (k - self.rungs + 1) for k in range(self.rungs))

    def settings(self, space: Space, trials: Sequence[Trial], number: int, seed: int) -> dict[str, Any]:
        return space.sample(seed, number)


def ranked(trials: Sequence[Trial], rung: int) -> list[Trial]:
    """Trials with a finite score at a rung, the best first."""
    scores = [(score, trial.number, trial) for trial in trials if (score := trial.at(rung)) is not None]
    return [trial for score, _, trial in sorted(scores, key=lambda item: item[:2]) if math.isfinite(score)]


@dataclass(frozen=True)
class SuccessiveHalving(Rungs):
    r"""All trials to the first rung; the best :math:`1/\eta` of each rung go on once all of it are measured.

    Book: D2L 19.4. Paper: Jamieson and Talwalkar, 2016.

    >>> halving = SuccessiveHalving(eta=2, rungs=2)
    >>> measured = [Trial(0, {}, [0.3]), Trial(1, {}, [0.1])]
    >>> halving.next(measured[:1], 2), halving.next(measured, 2)
    ((1, 0), (1, 1))
    """

    def next(self, trials: Sequence[Trial], limit: int) -> tuple[int, int] | None:
        if len(trials) < limit:
            return next_number(trials, limit)
        members = list(trials)
        for rung in range(self.rungs):
            if missing := [trial for trial in members if not trial.started(rung)]:
                return missing[0].number, rung
            if any(trial.at(rung) is None for trial in members):
                return None  # the rung is not complete
            members = ranked(members, rung)[: max(1, limit // self.eta ** (rung + 1))]
        return None


@dataclass(frozen=True)
class ASHA(Rungs):
    r"""Asynchronous successive halving: a trial is promoted as soon as it is among the best :math:`1/\eta` of its rung.

    No worker waits for a rung to be complete. A promoted trial goes on from its own checkpoint, with the very same weights.
    Once all trials are begun and the rule promotes none, the best paused ones go on, those of the highest rung first, until a share `spend` of
    whole trainings of all trials is used up: good configurations that start slowly are not lost. `spend=0` is the rule alone.
    Book: D2L 19.5. Paper: Li et al., A System for Massively Parallel Hyperparameter Tuning, 2020.

    >>> asha = ASHA(eta=2, rungs=2)
    >>> asha.next([Trial(0, {}, [0.3])], 4), asha.next([Trial(0, {}, [0.3]), Trial(1, {}, [0.1])], 4)
    ((1, 0), (1, 1))
    """

    spend: float = 1 / 3

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.spend <= 1:
            raise WonderlandError(f"spend is a share of whole trainings from 0 to 1, not {self.spend}.")

    def next(self, trials: Sequence[Trial], limit: int) -> tuple[int, int] | None:
        for rung in reversed(range(self.rungs - 1)):
            measured = sum(trial.at(rung) is not None for trial in trials)
            for trial in ranked(trials, rung)[: measured // self.eta]:
                if not trial.started(rung + 1):
                    return trial.number, rung + 1
        return next_number(trials, limit) or self._further(trials, limit)

    def _further(self, trials: Sequence[Trial], limit: int) -> tuple[int, int] | None:
        """The best paused trial of the highest rung, while what it takes is left of the share."""
        shares = self.shares
        places = [trial.rung if trial.running is None else trial.running for trial in trials]
        left = self.spend * limit - sum(shares[place] for place in places if place >= 0)
        for rung in reversed(range(self.rungs - 1)):
            if shares[rung + 1] - shares[rung] > left + 1e-9:
                continue
            for trial in ranked(trials, rung):
                if not trial.started(rung + 1) and trial.failed is None:
                    return trial.number, rung + 1
        return None
