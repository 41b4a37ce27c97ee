"""Hyperband: successive halving begun at every rung, so that no single choice of the first rung decides; and BOHB, which also learns."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, mix
from wonderland.search.halving import Rungs, ranked
from wonderland.search.space import Space
from wonderland.search.trial import Trial

CANDIDATES = 64
NARROWEST, WIDER = 0.03, 3.0  # bandwidths: the least, and by how much candidates are drawn wider than what was measured


class Brackets(Rungs):
    """Trials in brackets: those of bracket s are not compared before rung s, then the best :math:`1/\\eta` of each rung go on."""

    def brackets(self, limit: int) -> Iterator[tuple[int, range]]:
        """The first rung at which trials are compared, and the numbers of the trials, bracket by bracket."""
        number = 0
        while number < limit:
            for first in range(self.rungs):
                left = self.rungs - first
                size = math.ceil(self.rungs / left * self.eta ** (left - 1))
                members = range(number, min(limit, number + size))
                if len(members):
                    yield first, members
                number = members.stop

    def next(self, trials: Sequence[Trial], limit: int) -> tuple[int, int] | None:
        for first, numbers in self.brackets(limit):
            members = [trial for trial in trials if trial.number in numbers]
            if len(members) < len(numbers):
                return len(trials), 0
            job = self._within(members, first)
            if job is not None:
                return job
        return None

    def _within(self, members: list[Trial], first: int) -> tuple[int, int] | None:
        """The next job of a bracket whose trials are all begun; None where it is done or has to wait."""
        size = len(members)
        for rung in range(self.rungs):
            for trial in members:
                ready = rung == 0 or trial.at(rung - 1) is not None
                if ready and trial.failed is None and not trial.started(rung):
                    return trial.number, rung
            if rung < first:
                continue
            if any(trial.at(rung) is None and trial.failed is None for trial in members):
                return None
            members = ranked(members, rung)[: max(1, size // self.eta ** (rung - first + 1))]
        return None


@dataclass(frozen=True)
class Hyperband(Brackets):
    r"""Brackets of successive halving that begin at each rung in turn, with random settings.

    The first compares :math:`\eta^{K-1}` trials after the shortest training, the last a few trials after whole ones.
    Book: D2L 19.4. Paper: Li et al., Hyperband, 2018.

    >>> [(first, len(numbers)) for first, numbers in Hyperband(eta=3, rungs=3).brackets(17)]
    [(0, 9), (1, 5), (2, 3)]
    """


@dataclass(frozen=True)
class BOHB(Brackets):
    r"""Hyperband whose settings come from the good trials so far, by densities of good and of bad ones.

    .. math:: \max_x \frac{l(x)}{g(x)}, \qquad l, g \text{ kernel densities of the best } \gamma \text{ of the trials and of the others}

    The trials of the highest rung that has enough of them are used. A share `random` of settings is random, and so are all before there are
    enough trials. Book: D2L 19.5. Paper: Falkner et al., 2018.
    """

    good: float = 0.15
    random: float = 1 / 3

    def __post_init__(self):
        super().__post_init__()
        if not 0 < self.good < 1 or not 0 <= self.random <= 1:
            raise WonderlandError("BOHB takes shares of good trials and of random settings from 0 to 1.")

    def settings(self, space: Space, trials: Sequence[Trial], number: int, seed: int) -> dict[str, Any]:
        draw = np.random.Generator(np.random.Philox(mix(seed, number, 1)))
        least = len(space.names) + 2
        rung = next((r for r in reversed(range(self.rungs)) if len(ranked(trials, r)) >= 2 * least), None)
        if draw.random() < self.random or rung is None:
            return space.sample(seed, number)
        known = ranked(trials, rung)
        cut = max(least, math.ceil(self.good * len(known)))
        places = np.array([space.place(trial.settings) for trial in known])
        best, rest = places[:cut], places[cut:]
        centres = best[draw.integers(len(best), size=CANDIDATES)]
        drawn = np.clip(centres + WIDER * bandwidth(best) * draw.normal(size=centres.shape), 0, 1)
        promise = log_density(drawn, best) - log_density(drawn, rest)
        return space.at(drawn[int(np.argmax(promise))].tolist())


def bandwidth(points: np.ndarray) -> np.ndarray:
    """Scott's width of a Gaussian kernel along each axis, of points in the unit cube (n, d): (d,)."""
    count, size = points.shape
    return np.maximum(points.std(0) * count ** (-1 / (size + 4)), NARROWEST)


def log_density(x: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The logarithm of a kernel density of points (n, d) at x (m, d), without its constant: (m,)."""
    width = bandwidth(points)
    exponents = -0.5 * np.square((x[:, None] - points) / width).sum(2)
    top = exponents.max(1, keepdims=True)
    return top[:, 0] + np.log(np.exp(exponents - top).mean(1)) - np.log(width).sum()
