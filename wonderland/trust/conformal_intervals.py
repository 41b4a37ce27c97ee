"""Intervals for numbers that hold the truth as often as they say."""

import math
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.arrays import class_labels, finite, same_rows
from wonderland.trust.conformal import Scores, check_level
from wonderland.trust.conformal_quantile import conformal_quantile, weighted_quantile

Ends = tuple[ndarray, ndarray]


def _pair(prediction: Any, y: Any) -> tuple[ndarray, ndarray]:
    centre, true = finite("prediction", prediction, 1), finite("y", y, 1)
    same_rows("prediction", centre, "y", true)
    return centre, true


def _scale(name: str, scale: Any, rows: ndarray) -> ndarray:
    wide = finite(name, scale, 1)
    same_rows("prediction", rows, name, wide)
    if wide.min() <= 0:
        raise WonderlandError(f"`{name}` holds {wide.min():g}: scales are above 0.")
    return wide


def split_intervals(
    prediction: Any,
    y: Any,
    new_prediction: Any,
    level: float,
    *,
    scale: Any = None,
    new_scale: Any = None,
    groups: Any = None,
    new_groups: Any = None,
    weights: Any = None,
    new_weights: Any = None,
) -> Ends:
    r"""Split conformal intervals, by default of one width.

    .. math:: \hat y(x) \pm q\, \sigma(x), \qquad q = \text{the } \lceil (n + 1) \ell \rceil\text{-th smallest }
              \frac{|y_i - \hat y(x_i)|}{\sigma(x_i)}

    `scale` and `new_scale` (any guess of the error's size, for instance a predicted deviation) make the width follow the
    row: normalised intervals. `groups` gives each group its own q, and infinite intervals to groups that were not seen.
    `weights` are density ratios, under covariate shift.

    Shapes: prediction, y (n,), new_prediction (m,) -> (m,), (m,). Papers: Papadopoulos et al., 2002; Lei et al., 2018.

    >>> low, high = split_intervals(np.zeros(99), np.arange(1, 100), [0.0, 5.0], 0.9)
    >>> high
    array([90., 95.])
    """
    check_level(level)
    centre, true = _pair(prediction, y)
    new = finite("new_prediction", new_prediction, 1)
    if (scale is None) != (new_scale is None):
        raise WonderlandError("Pass both `scale` and `new_scale`, or neither.")
    wide = np.ones_like(centre) if scale is None else _scale("scale", scale, centre)
    new_wide = np.ones_like(new) if new_scale is None else _scale("new_scale", new_scale, new)
    scores = np.abs(true - centre) / wide
    radius = _limits(scores, len(new), level, groups, new_groups, weights, new_weights)
    return new - radius * new_wide, new + radius * new_wide


def cqr_intervals(
    low: Any,
    high: Any,
    y: Any,
    new_low: Any,
    new_high: Any,
    level: float,
    *,
    groups: Any = None,
    new_groups: Any = None,
    weights: Any = None,
    new_weights: Any = None,
    symmetric: bool = True,
) -> Ends:
    r"""Conformalised quantile regression: predicted quantiles, moved so that they cover.

    .. math:: [q_{lo}(x) - Q,\ q_{hi}(x) + Q], \qquad s_i = \max(q_{lo}(x_i) - y_i,\ y_i - q_{hi}(x_i))

    Q may be negative: quantiles that cover too much are drawn in. Without `symmetric` each end has a Q of its own, at
    level :math:`(1 + \ell) / 2`, a little wider. Ends that cross meet in the middle.

    Shapes: low, high, y (n,), new_low, new_high (m,) -> (m,), (m,). Paper: Romano et al., 2019.

    >>> zeros, ones = np.zeros(99), np.ones(99)
    >>> low, high = cqr_intervals(zeros, ones, np.linspace(0, 1, 99), [0.0], [1.0], 0.8)
    >>> bool(low[0] > 0 and high[0] < 1)
    True
    """
    check_level(level)
    below, true = _pair(low, y)
    above = finite("high", high, 1)
    same_rows("low", below, "high", above)
    new_below, new_above = finite("new_low", new_low, 1), finite("new_high", new_high, 1)
    same_rows("new_low", new_below, "new_high", new_above)
    rest = (groups, new_groups, weights, new_weights)
    if symmetric:
        left = right = _limits(np.maximum(below - true, true - above), len(new_below), level, *rest)
    else:
        left = _limits(below - true, len(new_below), (1 + level) / 2, *rest)
        right = _limits(true - above, len(new_below), (1 + level) / 2, *rest)
    bottom, top = new_below - left, new_above + right
    crossed = bottom > top
    with np.errstate(invalid="ignore"):
        middle = (bottom + top) / 2
    return np.where(crossed, middle, bottom), np.where(crossed, middle, top)


def _limits(
    scores: ndarray, new: int, level: float, groups: Any, new_groups: Any, weights: Any, new_weights: Any
) -> ndarray:
    """The quantile for each new row. Shapes: (n,) -> (m,)."""
    if (groups is None) != (new_groups is None):
        raise WonderlandError("Pass both `groups` and `new_groups`, or neither.")
    if (weights is None) != (new_weights is None):
        raise WonderlandError("Pass both `weights` and `new_weights`, or neither.")
    if groups is not None:
        if weights is not None:
            raise WonderlandError("Weights and groups cannot be combined.")
        old_names, new_names = np.asarray(groups).astype(str), np.asarray(new_groups).astype(str)
        same_rows("y", scores, "groups", old_names)
        same_rows("the new predictions", np.empty(new), "new_groups", new_names)
        table = {name: conformal_quantile(scores[old_names == name], level) for name in np.unique(new_names).tolist()}
        return np.array([table[name] for name in new_names.tolist()])
    if weights is not None:
        limits = weighted_quantile(scores, weights, new_weights, level)
        same_rows("the new predictions", np.empty(new), "new_weights", limits)
        return limits
    return np.full(new, conformal_quantile(scores, level))


def cv_plus(prediction: Any, y: Any, folds: Any, new_predictions: Any, level: float) -> Ends:
    r"""CV+ intervals: every row is scored by the model that did not learn from it, and every model predicts.

    .. math:: \bigl[ \hat q^-\{\hat y^{(f_i)}(x) - r_i\},\ \hat q^+\{\hat y^{(f_i)}(x) + r_i\} \bigr], \qquad
              r_i = |y_i - \hat y^{(f_i)}(x_i)|

    Coverage is at least :math:`2 \ell - 1` for sure and about :math:`\ell` in practice. Shapes: prediction, y, folds (n,),
    new_predictions (f, m) -> (m,), (m,). Paper: Barber et al., 2021.

    >>> low, high = cv_plus(np.zeros(20), np.arange(20), [0, 1] * 10, [[0.0], [1.0]], 0.9)
    >>> (low.item(), high.item())
    (-18.0, 18.0)
    """
    centre, true = _pair(prediction, y)
    new = finite("new_predictions", new_predictions, 2)
    fold = class_labels(folds, len(new), name="folds")
    same_rows("prediction", centre, "folds", fold)
    return Scores.of(np.abs(true - centre), fold, len(new)).intervals(new, level)


def jackknife_plus(prediction: Any, y: Any, new_predictions: Any, level: float) -> Ends:
    r"""Jackknife+ intervals: CV+ with a model for each row left out.

    Shapes: prediction (n,), each row by the model without it; new_predictions (n, m), one row for each model -> (m,), (m,).
    Paper: Barber et al., 2021.

    >>> low, high = jackknife_plus(np.zeros(9), np.arange(1, 10), np.zeros((9, 1)), 0.9)
    >>> (low.item(), high.item())
    (-9.0, 9.0)
    """
    centre, true = _pair(prediction, y)
    new = finite("new_predictions", new_predictions, 2)
    same_rows("prediction", centre, "new_predictions", new)
    return cv_plus(centre, true, np.arange(len(centre)), new, level)


def jackknife_minmax(prediction: Any, y: Any, new_predictions: Any, level: float) -> Ends:
    r"""The widest of the leave-one-out predictions with the quantile of their errors: coverage :math:`\ell` for sure.

    .. math:: [\min_i \hat y^{(i)}(x) - q,\ \max_i \hat y^{(i)}(x) + q]

    Shapes: prediction, y (n,), new_predictions (n or f, m) -> (m,), (m,). Paper: Barber et al., 2021.

    >>> low, high = jackknife_minmax(np.zeros(9), np.arange(1, 10), [[0.0], [1.0]], 0.9)
    >>> (low.item(), high.item())
    (-9.0, 10.0)
    """
    centre, true = _pair(prediction, y)
    new = finite("new_predictions", new_predictions, 2)
    radius = conformal_quantile(np.abs(true - centre), level)
    return new.min(0) - radius, new.max(0) + radius


def leave_one_out_linear(X: Any, y: Any, new_X: Any, *, ridge: float = 0.0) -> tuple[ndarray, ndarray]:
    r"""Predictions of every leave-one-out linear model at once, from one fit and its hat matrix.

    .. math:: \hat y^{(i)}(x) = \hat y(x) - x^\top A^{-1} x_i \frac{y_i - \hat y(x_i)}{1 - h_{ii}}, \qquad
              A = X^\top X + \lambda I

    Shapes: X (n, c), y (n,), new_X (m, c) -> (n,), (n, m), as `jackknife_plus` takes them.

    >>> own, new = leave_one_out_linear([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.5], [[4.0]])
    >>> own.shape, new.shape
    ((3,), (3, 1))
    """
    rows, true, fresh = finite("X", X, 2), finite("y", y, 1), finite("new_X", new_X, 2)
    same_rows("X", rows, "y", true)
    design, extra = (np.concatenate([a, np.ones((len(a), 1))], 1) for a in (rows, fresh))
    penalty = np.full(design.shape[1], float(ridge))
    penalty[-1] = 0.0
    gram = design.T @ design + np.diag(penalty)
    if np.linalg.matrix_rank(gram) < len(gram):
        raise WonderlandError("Columns of `X` are combinations of others: drop them, or pass ridge > 0.")
    solved = np.linalg.solve(gram, design.T)
    weights = solved @ true
    leverage = np.einsum("nc,cn->n", design, solved)
    if leverage.max() > 1 - 1e-10:
        raise WonderlandError(
            f"Row {int(leverage.argmax())} decides its own prediction: without it the model has no answer."
        )
    error = (true - design @ weights) / (1 - leverage)
    return true - error, (extra @ weights)[None, :] - (extra @ solved).T * error[:, None]


def expected_coverage_bounds(level: float, rows: int) -> tuple[float, float]:
    r"""Where the mean coverage of split conformal prediction lies: from :math:`\ell` to :math:`\ell + 1 / (n + 1)`.

    >>> expected_coverage_bounds(0.9, 99)
    (0.9, 0.91)
    """
    check_level(level)
    if math.ceil(level * (rows + 1) - 1e-9) > rows:
        return 1.0, 1.0
    return level, level + 1 / (rows + 1)
