"""Two objectives: the trials that no other beats in both, and one number that stands for both."""

import math
from collections.abc import Sequence

import numpy as np

from wonderland.core import mix
from wonderland.search.trial import Trial

LEAN = 0.05  # of the sum in the scalar, which tells apart points with equal maximum


def pareto_front(trials: Sequence[Trial]) -> list[Trial]:
    """Trials of the highest rung that no other beats in score and cost, the cheapest first.

    >>> trials = [Trial(0, {}, [0.3], cost=1.0), Trial(1, {}, [0.2], cost=2.0), Trial(2, {}, [0.25], cost=3.0)]
    >>> [trial.number for trial in pareto_front(trials)]
    [0, 1]
    """
    known = [trial for trial in trials if math.isfinite(trial.score) and trial.cost is not None]
    top = max((trial.rung for trial in known), default=-1)
    front: list[Trial] = []
    for trial in sorted((t for t in known if t.rung == top), key=lambda t: (t.cost, t.score, t.number)):
        if not front or trial.score < front[-1].score:
            front.append(trial)
    return front


def scalars(scores: np.ndarray, costs: np.ndarray, *, seed: int) -> np.ndarray:
    r"""One number for score and cost, by weights that the seed draws: over many of them the whole front is looked for.

    .. math:: s = \max(w f_1, (1 - w) f_2) + \rho (w f_1 + (1 - w) f_2), \qquad f_1, f_2 \in [0, 1]

    Costs are taken on a logarithmic scale where they span more than a factor of ten. Shapes: (n,), (n,) -> (n,). Paper: Knowles, ParEGO, 2006.
    """
    weight = np.random.Generator(np.random.Philox(mix(seed, 5))).random()
    if costs.min() > 0 and costs.max() > 10 * costs.min():
        costs = np.log(costs)
    parts = np.stack([weight * _unit(scores), (1 - weight) * _unit(costs)])
    return parts.max(0) + LEAN * parts.sum(0)


def _unit(values: np.ndarray) -> np.ndarray:
    spread = values.max() - values.min()
    return (values - values.min()) / spread if spread > 0 else np.zeros_like(values)
