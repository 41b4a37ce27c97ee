"""Bandits: one state, some arms, and the price of finding out which is best."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wonderland.core import WonderlandError
from wonderland.rl.exploration import EpsilonGreedy, Exploration, UpperConfidence
from wonderland.rl.tabular import choice


@dataclass(frozen=True)
class Pulled:
    """The arm of each pull (n,), its reward (n,), and the regret so far (n,): what the best arm would have brought on average, less what the chosen ones do."""

    arms: np.ndarray
    rewards: np.ndarray
    regret: np.ndarray


Chooser = Callable[[np.ndarray, np.ndarray, np.random.Generator], int]


def by(explore: Exploration) -> Chooser:
    """A way to explore as a choice from mean rewards."""

    def choose(sums: np.ndarray, counts: np.ndarray, draw: np.random.Generator) -> int:
        return choice(draw, explore.probabilities(sums / np.maximum(counts, 1), counts))

    return choose


def thompson(sums: np.ndarray, counts: np.ndarray, draw: np.random.Generator) -> int:
    r"""Thompson sampling for rewards of 0 and 1: draw each arm's chance from its posterior, take the best.

    .. math:: \theta_a \sim \text{Beta}(1 + s_a, 1 + n_a - s_a)
    """
    return int(draw.beta(1 + sums, 1 + counts - sums).argmax())


WAYS: dict[str, Chooser] = {"epsilon": by(EpsilonGreedy(0.1)), "ucb": by(UpperConfidence()), "thompson": thompson}


def bandit(chances: Sequence[float], way: str | Chooser, *, pulls: int = 1000, seed: int = 0) -> Pulled:
    """Play arms that pay 1 with the given chances.

    `way` is "epsilon" (0.1), "ucb", "thompson", or `by(exploration)`.

    >>> bandit([0.1, 0.9], "thompson", pulls=200).arms[-50:].mean() > 0.9
    np.True_
    """
    arms = np.asarray(chances, float)
    if arms.ndim != 1 or not len(arms) or not ((arms >= 0) & (arms <= 1)).all():
        raise WonderlandError("The arms of a bandit pay with chances between 0 and 1.")
    if isinstance(way, str) and way not in WAYS:
        raise WonderlandError(f"There is no way to play called {way!r}. Known are {', '.join(WAYS)}.")
    choose = WAYS[way] if isinstance(way, str) else way
    draw = np.random.default_rng(seed)
    sums, counts = np.zeros(len(arms)), np.zeros(len(arms))
    taken, paid = np.zeros(pulls, np.int64), np.zeros(pulls)
    for pull in range(pulls):
        arm = choose(sums, counts, draw)
        reward = float(draw.random() < arms[arm])
        sums[arm], counts[arm] = sums[arm] + reward, counts[arm] + 1
        taken[pull], paid[pull] = arm, reward
    return Pulled(taken, paid, np.cumsum(arms.max() - arms[taken]))
