"""Decisions: what to do, given probabilities and what mistakes cost; and when to ask a person."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.probability import proportion_interval
from wonderland.trust.arrays import class_labels, class_probabilities, finite, same_rows


def cost_matrix(cost: Any, classes: int) -> ndarray:
    """A matrix of costs, checked: row k is what each action costs when the truth is k. Shapes: (c, a)."""
    array = finite("cost", cost, 2)
    if len(array) != classes:
        raise WonderlandError(
            f"`cost` has {len(array)} rows where there are {classes} classes: row k is what each action costs when the truth is k."
        )
    return array


def expected_cost(probabilities: Any, cost: Any) -> ndarray:
    r"""What each action costs on average: :math:`\sum_k p_k C_{ka}`. Shapes: (n, c), (c, a) -> (n, a).

    >>> expected_cost([[0.75, 0.25]], [[0.0, 1.0], [10.0, 0.0]])
    array([[2.5 , 0.75]])
    """
    array = class_probabilities(probabilities)
    return array @ cost_matrix(cost, array.shape[1])


def cheapest(probabilities: Any, cost: Any) -> ndarray:
    """The action with the smallest expected cost, the first among equals. Shapes: (n, c), (c, a) -> (n,).

    A miss that costs ten times a false alarm moves the threshold from 1/2 to 1/11. Paper: Elkan, 2001.

    >>> cheapest([[0.85, 0.15], [0.95, 0.05]], [[0.0, 1.0], [10.0, 0.0]])
    array([1, 0])
    """
    return expected_cost(probabilities, cost).argmin(1)


def best_by_utility(probabilities: Any, utility: Any) -> ndarray:
    """The action with the largest expected utility: the cheapest, with utilities as negative costs. Shapes: (n,).

    >>> best_by_utility([[0.85, 0.15]], [[1.0, 0.0], [0.0, 10.0]])
    array([1])
    """
    return cheapest(probabilities, -finite("utility", utility, 2))


def mean_cost(actions: Any, y: Any, cost: Any) -> float:
    """What actions cost in truth, on average. Shapes: (n,), (n,), (c, a).

    >>> mean_cost([0, 1], [0, 0], [[0.0, 1.0], [10.0, 0.0]])
    0.5
    """
    array = finite("cost", cost, 2)
    labels, chosen = class_labels(y, len(array)), class_labels(actions, array.shape[1], name="actions")
    same_rows("actions", chosen, "y", labels)
    return float(array[labels, chosen].mean())


@dataclass(frozen=True)
class CoverageRisk:
    """Risk among the rows that are answered, as their share grows, most confident first. Shapes: (n,) each."""

    coverage: ndarray
    risk: ndarray
    threshold: ndarray

    @property
    def area(self) -> float:
        """The mean risk over all coverages (AURC): small when mistakes are the rows that are least sure."""
        return float(self.risk.mean())

    def risk_at(self, coverage: float) -> float:
        """The risk when so large a share is answered."""
        return float(self.risk[max(0, int(np.ceil(coverage * len(self.risk) - 1e-9)) - 1)])


def coverage_risk(confidence: Any, loss: Any) -> CoverageRisk:
    r"""The coverage-risk curve of selective prediction: answer the surest rows, and what do they cost?

    .. math:: \text{risk}(k) = \frac1k \sum_{i \le k} \ell_{(i)}, \qquad \text{rows by falling confidence}

    Shapes: confidence (n,), loss (n,), for instance 1 where the prediction is wrong. Paper: Geifman and El-Yaniv, 2017.

    >>> coverage_risk([0.9, 0.6, 0.8], [0, 1, 0]).risk.round(2)
    array([0.  , 0.  , 0.33])
    """
    sure, cost = finite("confidence", confidence, 1), finite("loss", loss, 1)
    same_rows("confidence", sure, "loss", cost)
    order = np.argsort(-sure, kind="stable")
    count = np.arange(1, len(sure) + 1)
    # Rows of equal confidence are answered together or not at all, each at their mean cost.
    _, group, size = np.unique(-sure[order], return_inverse=True, return_counts=True)
    mean = np.bincount(group, cost[order]) / size
    return CoverageRisk(count / len(sure), np.cumsum(mean[group]) / count, sure[order])


@dataclass(frozen=True)
class Abstention:
    """A threshold of confidence: rows below go to a person."""

    threshold: float
    coverage: float
    risk: float
    bound: float

    def answers(self, confidence: Any) -> ndarray:
        """Which rows are answered. Shapes: (n,) -> (n,), boolean."""
        return finite("confidence", confidence, 1) >= self.threshold


def abstain(confidence: Any, wrong: Any, risk: float, *, doubt: float = 0.05) -> Abstention:
    r"""The lowest threshold whose answered rows are wrong at most in the share `risk`, with probability 1 - `doubt`.

    .. math:: \bar R(k) = \sup \{r : P(\mathrm{Bin}(k, r) \le \text{mistakes}) \ge \delta\} \le \text{risk}

    Thresholds are tried from the surest rows down, one row in twenty at a time, and the search stops at the first whose
    bound fails: such a sequence of tests needs no correction. When even the surest rows fail, nothing is answered.
    Shapes: confidence (n,), wrong (n,) of 0 and 1, of rows the model did not learn from. Papers: Geifman and El-Yaniv,
    2017; Angelopoulos et al., 2021 (learn then test).

    >>> sure = np.linspace(0.5, 1, 1000)
    >>> rule = abstain(sure, np.r_[np.ones(300), np.zeros(700)], 0.05)
    >>> 0.6 < rule.coverage < 0.75
    True
    """
    sure, mistakes = finite("confidence", confidence, 1), finite("wrong", wrong, 1)
    same_rows("confidence", sure, "wrong", mistakes)
    for name, value in (("risk", risk), ("doubt", doubt)):
        if not 0 < value < 1:
            raise WonderlandError(f"`{name}` has to lie strictly between 0 and 1, not at {value}.")
    if set(np.unique(mistakes).tolist()) - {0.0, 1.0}:
        raise WonderlandError("`wrong` has to hold 0 and 1.")
    best = Abstention(np.inf, 0.0, 0.0, 1.0)
    ordered = np.sort(sure)[::-1]
    # With fewer rows not even zero mistakes would pass; that depends on the numbers asked for alone.
    first = int(np.ceil(np.log(doubt) / np.log(1 - risk)))
    # Twice as many allow the surest rows a mistake, where there are so many.
    first = 2 * first if len(sure) >= 2 * first else first
    steps = {int(np.ceil(len(sure) * share / 20)) for share in range(1, 21)}
    for k in sorted({max(first, k) for k in steps if len(sure) >= first}):
        threshold = float(ordered[k - 1])
        inside = sure >= threshold
        count, errors = int(inside.sum()), int(mistakes[inside].sum())
        bound = binomial_upper(errors, count, doubt)
        if bound > risk:
            break
        best = Abstention(threshold, count / len(sure), errors / count, bound)
    return best


def binomial_upper(errors: int, count: int, doubt: float) -> float:
    r"""The largest rate under which so few errors have a chance of `doubt` (Clopper and Pearson's bound).

    >>> round(binomial_upper(0, 59, 0.05), 3)
    0.05
    """
    return proportion_interval(errors, count, confidence=1 - 2 * doubt, method="exact")[1]
