"""Bayesian optimisation: a Gaussian process of the scores, and an acquisition function that says where to look next."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, mix
from wonderland.probability.gaussian_process import Constant as ConstantKernel
from wonderland.probability.gaussian_process import GaussianProcess, Matern
from wonderland.search.pareto import scalars
from wonderland.search.space import Space
from wonderland.search.trial import Trial
from wonderland.search.tuner import Tuner, next_number

CANDIDATES, AROUND, ROUNDS = 1000, 300, 4
LENGTHS = (
    math.log(0.05),
    math.log(10.0),
)  # of scales in the unit cube: with few points the evidence alone can go anywhere


def expected_improvement(mean: Tensor, deviation: Tensor, best: float) -> Tensor:
    r"""How much smaller than the best score so far a score is expected to be.

    .. math:: \mathrm{EI}(x) = \sigma(x) \left( z \, \Phi(z) + \phi(z) \right), \qquad z = \frac{f_{\min} - \mu(x)}{\sigma(x)}

    Shapes: mean (m,), deviation (m,) -> (m,). Book: D2L 19.5. Paper: Jones et al., 1998.

    >>> expected_improvement(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 0.0]), 0.0).round(decimals=3)
    tensor([0.3990, 0.0000])
    """
    safe = deviation.clamp(min=1e-12)
    z = (best - mean) / safe
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    below = 0.5 * torch.erfc(-z / math.sqrt(2))
    return torch.where(deviation > 0, safe * (z * below + density), (best - mean).clamp(min=0))


def confidence_bound(mean: Tensor, deviation: Tensor, kappa: float = 2.0) -> Tensor:
    r"""The upper confidence bound of what is to be maximised, the negative score.

    .. math:: \mathrm{UCB}(x) = -\mu(x) + \kappa \, \sigma(x)

    Shapes: mean (m,), deviation (m,) -> (m,). Book: D2L 19.5. Paper: Srinivas et al., 2010.

    >>> confidence_bound(torch.tensor([1.0]), torch.tensor([0.5]))
    tensor([0.])
    """
    return kappa * deviation - mean


@dataclass(frozen=True)
class BayesianOptimisation(Tuner):
    """A Gaussian process of the scores (Matérn 5/2, a length scale for each setting), and the point that promises most.

    The first `start` trials are random. Trials that still run are taken to have the best score so far (constant liar), so
    that parallel workers look at different places; failed trials have the worst. Choices are one number for each value, and
    whole numbers are rounded before the process sees them. Book: D2L 19.5. Paper: Snoek et al., 2012; Ginsbourger et al., 2010.
    """

    acquisition: str = "ei"
    start: int | None = None
    kappa: float = 2.0

    def __post_init__(self):
        if self.acquisition not in ("ei", "ucb"):
            raise WonderlandError(f"There is no acquisition {self.acquisition!r}. Known are ei, ucb.")

    def next(self, trials: Sequence[Trial], limit: int) -> tuple[int, int] | None:
        return next_number(trials, limit)

    def settings(self, space: Space, trials: Sequence[Trial], number: int, seed: int) -> dict[str, Any]:
        start = min(10, 2 + 2 * len(space.names)) if self.start is None else self.start
        finite = [trial.score for trial in trials if math.isfinite(trial.score)]
        if number < start or len(finite) < 2:
            return space.sample(seed, number)
        worst, best = max(finite), min(finite)
        known = [trial for trial in trials if trial.failed is not None or trial.scores or trial.running is not None]
        scores = np.array([_score(trial, worst, best) for trial in known])
        places = np.array([space.encode(trial.settings) for trial in known])
        costs = [trial.cost for trial in known]
        if any(cost is not None for cost in costs):
            typical = float(np.median([cost for cost in costs if cost is not None]))
            filled = np.array([typical if cost is None else cost for cost in costs])
            scores = scalars(warped(scores), filled, seed=mix(seed, number))
        target = warped(scores)
        posterior = fitted(torch.from_numpy(places), torch.from_numpy(target), seed=mix(seed, number))
        tried = {tuple(row) for row in places.tolist()}
        points = np.array([space.place(trial.settings) for trial in known])

        def promise(units: np.ndarray) -> np.ndarray:
            encoded = [space.encode(space.at(row)) for row in units.tolist()]
            mean, variance = posterior.predict(torch.tensor(encoded, dtype=torch.float64))
            deviation = variance.sqrt()
            if self.acquisition == "ei":
                score = expected_improvement(mean, deviation, float(target.min())).numpy()
            else:
                score = confidence_bound(mean, deviation, self.kappa).numpy()
            return np.where([tuple(row) in tried for row in encoded], -math.inf, score)

        unit = maximised(promise, points[np.argsort(target, kind="stable")[:3]], seed=mix(seed, number))
        return space.sample(seed, number) if unit is None else space.at(unit.tolist())


def _score(trial: Trial, worst: float, best: float) -> float:
    if trial.failed is not None:
        return worst
    return trial.scores[-1] if trial.scores else best  # the lie about a trial that runs


def warped(scores: np.ndarray) -> np.ndarray:
    """Scores with a long upper tail on a logarithmic scale above the best: the process has to be right near the best.

    >>> warped(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    >>> warped(np.array([0.0, 1.0, 1000.0])).round(2).tolist()
    [0.0, 0.69, 6.91]
    """
    low, middle, high = scores.min(), np.median(scores), scores.max()
    scale = middle - low
    if not scale > 0 or high - middle <= 3 * scale:
        return scores
    return np.log1p((scores - low) / scale)


def fitted(X: Tensor, y: Tensor, *, seed: int) -> Any:
    """The posterior under hyperparameters of the largest evidence, with length scales kept in bounds."""
    kernel = ConstantKernel(1.0) * Matern(torch.full((X.shape[1],), 0.5, dtype=torch.float64), nu=2.5)
    posterior = GaussianProcess(kernel, noise=1e-3).fit(X, y, seed=seed, steps=40)
    theta = posterior.process.kernel.theta.clone()
    theta[1:] = theta[1:].clamp(*LENGTHS)
    theta[0] = theta[0].clamp(math.log(0.05), math.log(100.0))
    process = GaussianProcess(posterior.process.kernel.with_theta(theta), min(posterior.process.noise, 0.5))
    return process.condition(X, y, standardise=True)


def maximised(promise: Any, centres: np.ndarray, *, seed: int) -> np.ndarray | None:
    """The point of the unit cube with the largest promise: many random ones, then ever closer around the best; None if all are tried."""
    draw = np.random.Generator(np.random.Philox(seed))
    size = centres.shape[1]
    units = [draw.random((CANDIDATES, size))]
    for centre in centres:
        for width in (0.1, 0.02):
            units.append(_near(draw, centre[None], width, AROUND // 2))
    units = np.concatenate(units)
    values = promise(units)
    for turn in range(ROUNDS):
        top = np.argsort(-values, kind="stable")[:5]
        closer = _near(draw, units[top], 0.05 / 3**turn, AROUND // 5)
        units = np.concatenate([units[top], closer])
        values = np.concatenate([values[top], promise(closer)])
    best = int(np.argmax(values))
    return units[best] if math.isfinite(values[best]) else None


def _near(draw: np.random.Generator, centres: np.ndarray, width: float, count: int) -> np.ndarray:
    """Points around centres: each moves in some of its coordinates."""
    points = np.repeat(centres, count, axis=0)
    moved = draw.random(points.shape) < max(0.5, 1 / points.shape[1])
    return np.clip(points + width * draw.normal(size=points.shape) * moved, 0, 1)
