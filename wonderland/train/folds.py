"""Cross-validation: every row is held out once, which gives a score and its standard error from few rows."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, permutation


@dataclass(frozen=True)
class CrossValidation:
    """Scores of the folds, their mean, and the standard error of that mean."""

    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over folds."""
        return sum(self.scores) / len(self.scores)

    @property
    def error(self) -> float:
        """Standard error of the mean. Folds share training rows, so it is an underestimate."""
        spread = sum((score - self.mean) ** 2 for score in self.scores) / (len(self.scores) - 1)
        return math.sqrt(spread / len(self.scores))


def k_fold(rows: int, folds: int, *, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row numbers to train on and to hold out, for each fold; sizes differ by one at most.

    Strata, groups and time need `wonderland.data.split(dataset, folds=k)`, whose `folds` names the fold of each row.
    Book: D2L 3.6.

    >>> [holdout.tolist() for _, holdout in k_fold(4, 2, seed=1)]
    [[2, 3], [0, 1]]
    """
    if not 2 <= folds <= rows:
        raise WonderlandError(f"k_fold takes from 2 folds to one for each of the {rows} rows, not {folds}.")
    fold = np.empty(rows, np.int64)
    fold[permutation(seed, 0, rows)] = np.arange(rows) % folds
    return ((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(folds))


def cross_validate(
    score: Callable[[np.ndarray, np.ndarray], float], folds: Iterator[Any] | Sequence[Any]
) -> CrossValidation:
    """The score of each fold: `score(train_rows, holdout_rows)` fits a new model on the first and evaluates it on the second.

    >>> y = np.arange(6.0)
    >>> result = cross_validate(lambda train, holdout: float(abs(y[train].mean() - y[holdout].mean())), k_fold(6, 3))
    >>> len(result.scores)
    3
    """
    scores = tuple(float(score(train, holdout)) for train, holdout in folds)
    if len(scores) < 2:
        raise WonderlandError(f"cross_validate takes at least 2 folds, not {len(scores)}.")
    for k, value in enumerate(scores):
        if not math.isfinite(value):
            raise WonderlandError(f"cross_validate got the score {value:g} from fold {k}: there is no mean of it.")
    return CrossValidation(scores)
