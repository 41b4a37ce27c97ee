"""Conformal prediction sets of classes: calibrated once, stored, and used on new rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError, permutation
from wonderland.trust.arrays import class_labels, class_probabilities, finite, same_rows
from wonderland.trust.conformal import check_level
from wonderland.trust.conformal_quantile import conformal_quantile, weighted_quantile
from wonderland.trust.conformal_scores import lac_scores, raps_scores

SCORES = ("lac", "aps", "raps")
PENALTIES = (0.001, 0.01, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class ConformalSets:
    """Calibrated sets of classes: the score, and the calibration scores of all rows, of each class, or of each group.

    `cells` maps the name of a class ("0", "1", ...) or group to sorted scores; all rows together are the cell "".
    """

    score: str
    by: str
    classes: int
    cells: dict[str, ndarray]
    penalty: float = 0.0
    rank: int = 0
    randomised: bool = True
    seed: int = 0
    weights: ndarray | None = field(default=None, compare=False)

    def scores(self, probabilities: Any, *, epoch: int = 1) -> ndarray:
        """How badly each class fits each row. Shapes: (n, c) -> (n, c)."""
        array = class_probabilities(probabilities)
        if array.shape[1] != self.classes:
            raise WonderlandError(
                f"`probabilities` has {array.shape[1]} classes where the sets were calibrated on {self.classes}."
            )
        if self.score == "lac":
            return lac_scores(array)
        u = None if self.randomised else np.ones(len(array))
        return raps_scores(array, penalty=self.penalty, rank=self.rank, u=u, seed=self.seed, epoch=epoch)

    def sets(self, probabilities: Any, level: float, *, groups: Any = None, new_weights: Any = None) -> ndarray:
        """Which classes belong to the set of each row. Shapes: (n, c) -> (n, c), boolean.

        A set that is not empty holds the most probable class. A class, or a group, without enough calibration rows
        for the level is never left out. `groups` names the group of each row; `new_weights` is its density ratio.
        """
        check_level(level)
        array = class_probabilities(probabilities)
        scores = self.scores(array)
        if self.by == "class":
            limits = np.array([conformal_quantile(self.cells.get(str(k), ()), level) for k in range(self.classes)])
            chosen = scores <= limits + 1e-12
        elif self.by == "group":
            if groups is None:
                raise WonderlandError("The sets were calibrated by group: pass `groups`, the group of each row.")
            named = np.asarray(groups).astype(str)
            same_rows("probabilities", array, "groups", named)
            limits = {name: conformal_quantile(self.cells.get(name, ()), level) for name in np.unique(named).tolist()}
            chosen = scores <= np.array([limits[name] for name in named.tolist()])[:, None] + 1e-12
        elif self.weights is not None:
            if new_weights is None:
                raise WonderlandError(
                    "The sets were calibrated with weights: pass `new_weights`, the weight of each new row."
                )
            limit = weighted_quantile(self.cells[""], self.weights, new_weights, level)
            same_rows("probabilities", array, "new_weights", limit)
            chosen = scores <= limit[:, None] + 1e-12
        else:
            chosen = scores <= conformal_quantile(self.cells[""], level) + 1e-12
        top = np.arange(self.classes) == array.argmax(1)[:, None]
        return chosen | (top & chosen.any(1, keepdims=True))

    def reached(self, probabilities: Any, groups: Any = None) -> tuple[ndarray, ndarray]:
        """How many calibration rows of a candidate's cell fit as badly or worse, and how many there are. Shapes: (n, c), (n, c)."""
        scores = self.scores(probabilities)
        worse, total = np.zeros(scores.shape), np.zeros(scores.shape)
        named = None if groups is None else np.asarray(groups).astype(str)
        for name, cell in self.cells.items():
            if self.by == "class":
                inside = np.s_[:, int(name)]
            elif self.by == "group":
                if named is None:
                    raise WonderlandError("The sets were calibrated by group: pass `groups`, the group of each row.")
                inside = np.s_[named == name]
            else:
                inside = np.s_[:]
            worse[inside] = len(cell) - np.searchsorted(cell, scores[inside] - 1e-12, side="left")
            total[inside] = len(cell)
        return worse, total

    def note(self, level: float) -> str:
        """What a user should know about this level: classes or groups with too few rows, if there are any."""
        check_level(level)
        wanted = math.ceil(1 / (1 - level) - 1e-9) - 1
        names = [str(k) for k in range(self.classes)] if self.by == "class" else list(self.cells)
        few = [name for name in names if len(self.cells.get(name, ())) < wanted]
        if not few:
            return ""
        if not self.by:
            return (
                f"{len(self.cells[''])} calibration rows are too few for a level of {level:g}: at least {wanted} are "
                "needed, so every class is kept."
            )
        kind = ("class", "classes") if self.by == "class" else ("group", "groups")
        shown = ", ".join(few[:5]) + (", ..." if len(few) > 5 else "")
        one = len(few) == 1
        return (
            f"{kind[0 if one else 1].capitalize()} {shown} {'has' if one else 'have'} fewer than the {wanted} calibration "
            f"rows that a level of {level:g} needs, so {'it is' if one else 'they are'} never left out."
        )

    def to_json(self) -> dict[str, Any]:
        """As plain numbers."""
        return {
            "score": self.score, "by": self.by, "classes": self.classes, "penalty": self.penalty, "rank": self.rank,
            "randomised": self.randomised, "seed": self.seed,
            "cells": {name: cell.tolist() for name, cell in self.cells.items()},
            "weights": None if self.weights is None else self.weights.tolist(),
        }  # fmt: skip

    @staticmethod
    def from_json(value: Any) -> "ConformalSets":
        """From `to_json`; anything else is refused."""
        try:
            cells = {str(name): np.asarray(cell, np.float64) for name, cell in value["cells"].items()}
            weights = None if value["weights"] is None else np.asarray(value["weights"], np.float64)
            if value["score"] not in SCORES or value["by"] not in ("", "class", "group"):
                raise ValueError
            if not all(cell.ndim == 1 and np.isfinite(cell).all() for cell in cells.values()):
                raise ValueError
            return ConformalSets(
                value["score"], value["by"], int(value["classes"]), cells, float(value["penalty"]), int(value["rank"]),
                bool(value["randomised"]), int(value["seed"]), weights,
            )  # fmt: skip
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise WonderlandError("The calibrated sets cannot be read: the file is damaged.") from error


def conformal_sets(
    probabilities: Any,
    y: Any,
    *,
    score: str = "lac",
    by: str = "",
    groups: Any = None,
    weights: Any = None,
    randomised: bool = True,
    penalty: float | None = None,
    rank: int | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> ConformalSets:
    r"""Calibrate sets of classes on rows that the classifier did not learn from.

    .. math:: C(x) = \{k : s_k(x) \le q\}, \qquad q = \text{the } \lceil (n + 1) \ell \rceil\text{-th smallest } s_{y_i}(x_i)

    ====================  =================================================================================
    `score="lac"`         1 - p: smallest sets on average
    `score="aps"`         mass of all classes as probable: sets grow where the classifier is unsure
    `score="raps"`        the same with a price for rank; the price is tuned on a fifth of the rows, which are
                          then left out of calibration
    `by="class"`          a quantile for each class: the level holds in every class (Mondrian)
    `by="group"`          a quantile for each group of rows
    `weights`             density ratios of the rows: the level holds under that covariate shift
    ====================  =================================================================================

    Shapes: probabilities (n, c), y (n,). Papers: Vovk et al., 2005; Sadinle et al., 2019; Romano et al., 2020;
    Angelopoulos et al., 2021; Tibshirani et al., 2019.

    >>> fit = conformal_sets([[0.9, 0.1]] * 19 + [[0.4, 0.6]], [0] * 20)
    >>> fit.sets([[0.8, 0.2], [0.5, 0.5], [0.95, 0.05]], 0.9)
    array([[False, False],
           [False, False],
           [ True, False]])
    """
    array = class_probabilities(probabilities)
    labels = class_labels(y, array.shape[1])
    same_rows("probabilities", array, "y", labels)
    if score not in SCORES:
        raise WonderlandError(f"`score` is one of {', '.join(SCORES)}, not {score!r}.")
    if by not in ("", "class", "group"):
        raise WonderlandError(f"`by` is '', 'class' or 'group', not {by!r}.")
    if by == "group":
        if groups is None:
            raise WonderlandError("Sets by group need `groups`, the group of each row.")
        same_rows("probabilities", array, "groups", np.asarray(groups))
    mass = None
    if weights is not None:
        if by:
            raise WonderlandError("Weights and sets by class or group cannot be combined.")
        mass = finite("weights", weights, 1)
        same_rows("probabilities", array, "weights", mass)
    used = np.ones(len(labels), bool)
    if score == "raps" and (penalty is None or rank is None):
        tuning = permutation(seed, 0, len(labels))[: len(labels) // 5]
        used[tuning] = False
        penalty, rank = _tune(array[tuning], labels[tuning], level, randomised, seed)
    base = ConformalSets(score, by, array.shape[1], {}, penalty or 0.0, rank or 0, randomised, seed)
    own = base.scores(array, epoch=0)[np.arange(len(labels)), labels]
    if by == "class":
        cells = {
            str(k): np.sort(own[used & (labels == k)]) for k in range(array.shape[1]) if (used & (labels == k)).any()
        }
    elif by == "group":
        named = np.asarray(groups).astype(str)
        cells = {name: np.sort(own[used & (named == name)]) for name in np.unique(named[used]).tolist()}
    else:
        order = np.argsort(own[used], kind="stable")
        cells = {"": own[used][order]}
        mass = None if mass is None else mass[used][order]
    return ConformalSets(score, by, array.shape[1], cells, base.penalty, base.rank, randomised, seed, mass)


def _tune(array: ndarray, labels: ndarray, level: float, randomised: bool, seed: int) -> tuple[float, int]:
    """The price and the free rank with the smallest sets on these rows; too few rows take a mild price."""
    if len(labels) < 20:
        return 0.01, 1
    place = (array > array[np.arange(len(labels)), labels][:, None]).sum(1) + 1
    free = conformal_quantile(place, level)
    rank = array.shape[1] if math.isinf(free) else int(free)
    sizes = {}
    for penalty in PENALTIES:
        u = None if randomised else np.ones(len(labels))
        scores = raps_scores(array, penalty=penalty, rank=rank, u=u, seed=seed, epoch=2)
        limit = conformal_quantile(scores[np.arange(len(labels)), labels], level)
        sizes[penalty] = float((scores <= limit).sum(1).mean())
    return min(sizes, key=lambda penalty: (sizes[penalty], penalty)), rank


def joined_sets(fitted: Sequence[ConformalSets], probabilities: Any, level: float, *, groups: Any = None) -> ndarray:
    r"""Sets from the calibration of several folds, each with the probabilities of its own model (`cross_sets`, by cells).

    .. math:: p_k(x) = \frac{1 + \sum_f \#\{i \in f : s^{(f)}_{y_i}(x_i) \ge s^{(f)}_k(x)\}}{1 + \sum_f n_f}

    over the calibration rows of the cell of (x, k): all rows, those of class k, or those of the group of x.
    Shapes: probabilities (f, m, c), groups (m,) -> (m, c), boolean. With one fold these are the sets of `ConformalSets.sets`,
    but for the most probable class, which the caller adds.
    """
    check_level(level)
    counts = [own.reached(p, groups) for own, p in zip(fitted, probabilities, strict=True)]
    worse, total = (np.sum(parts, 0) for parts in zip(*counts, strict=True))
    return (1 + worse) / (1 + total) > 1 - level + 1e-12


def cross_sets(
    probabilities: Any, y: Any, folds: Any, new_probabilities: Any, level: float, *, score: str = "lac", seed: int = 0
) -> ndarray:
    r"""Cross-conformal sets: each fold's model scores the rows it did not learn from, and new rows.

    .. math:: p_k(x) = \frac{1 + \sum_f \#\{i \in f : s^{(f)}_{y_i}(x_i) \ge s^{(f)}_k(x)\}}{n + 1}, \qquad
              C(x) = \{k : p_k(x) > 1 - \ell\}

    Every row calibrates and trains. Coverage is at least :math:`2 \ell - 1` for sure and about :math:`\ell` in practice.
    Shapes: probabilities (n, c), each row by the model that did not see it; folds (n,) from 0; new_probabilities
    (f, m, c), one for each model -> (m, c), boolean. Papers: Vovk, 2015; Romano et al., 2020 (CV+).

    >>> old = np.array([[0.9, 0.1]] * 20)
    >>> cross_sets(old, [0] * 20, [0, 1] * 10, [[[0.95, 0.05]], [[0.9, 0.1]]], 0.9)
    array([[ True, False]])
    """
    check_level(level)
    array = class_probabilities(probabilities)
    labels = class_labels(y, array.shape[1])
    same_rows("probabilities", array, "y", labels)
    new = finite("new_probabilities", new_probabilities, 3)
    fold = class_labels(folds, len(new), name="folds")
    same_rows("probabilities", array, "folds", fold)
    base = ConformalSets(score, "", array.shape[1], {}, seed=seed) if score in SCORES else None
    if base is None:
        raise WonderlandError(f"`score` is one of {', '.join(SCORES)}, not {score!r}.")
    own = base.scores(array, epoch=0)[np.arange(len(labels)), labels]
    worse = np.zeros(new.shape[1:])
    for index, predicted in enumerate(new):
        sorted_scores = np.sort(own[fold == index])
        worse += len(sorted_scores) - np.searchsorted(sorted_scores, base.scores(predicted) - 1e-12, side="left")
    chosen = (1 + worse) / (len(labels) + 1) > 1 - level + 1e-12
    top = np.arange(array.shape[1]) == new.mean(0).argmax(1)[:, None]
    return chosen | (top & chosen.any(1, keepdims=True))
