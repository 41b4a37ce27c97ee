"""One split: a model fitted on some rows, calibrated on others, and measured on the rest, by every method."""

import numpy as np
from numpy import ndarray

from wonderland.solvers import softmax_regression
from wonderland.trust import (
    AdaptiveConformal,
    conformal_sets,
    cqr_intervals,
    cross_sets,
    cv_plus,
    jackknife_minmax,
    jackknife_plus,
    leave_one_out_linear,
    split_intervals,
)

LEVEL = 0.9
CALIBRATION, NEW = 150, 300
FRESH = np.arange(900)[900 - NEW :]
Measured = dict[str, tuple[float, float]]


def classes(split: int, count: int = 5) -> tuple[ndarray, ndarray]:
    """Features and labels of five overlapping, unequal classes."""
    generator = np.random.default_rng([split, 1])
    centres = np.random.default_rng(7).normal(size=(count, 6))
    y = generator.choice(count, 900, p=np.array([0.35, 0.25, 0.2, 0.12, 0.08]))
    return centres[y] + generator.normal(size=(900, 6)), y


def sets(split: int) -> Measured:
    """Coverage and mean size of every kind of set."""
    X, y = classes(split)
    train, old, new = slice(0, 450), slice(450, 450 + CALIBRATION), slice(900 - NEW, 900)
    fit = softmax_regression(X[train], y[train], ridge=1.0)
    p = fit.probabilities(X).numpy()
    found: Measured = {}

    def note(name: str, chosen: ndarray, rows: ndarray = FRESH) -> None:
        found[name] = float(chosen[np.arange(len(rows)), y[rows]].mean()), float(chosen.sum(1).mean())

    for score in ("lac", "aps", "raps"):
        note(f"split, {score}", conformal_sets(p[old], y[old], score=score, seed=split).sets(p[new], LEVEL))
    by_class = conformal_sets(p[old], y[old], by="class").sets(p[new], LEVEL)
    note("by class", by_class)
    group = np.where(X[:, 0] > 0, "right", "left")
    fitted = conformal_sets(p[old], y[old], by="group", groups=group[old])
    note("by group", fitted.sets(p[new], LEVEL, groups=group[new]))
    fold = np.arange(600) % 5
    models = [softmax_regression(X[:600][fold != k], y[:600][fold != k], ridge=1.0) for k in range(5)]
    own = np.stack([model.probabilities(X[:600]).numpy() for model in models])[fold, np.arange(600)]
    fresh = np.stack([model.probabilities(X[new]).numpy() for model in models])
    note("cross, lac", cross_sets(own, y[:600], fold, fresh, LEVEL))
    ratio = np.exp(0.7 * X[:, 0])
    drawn = np.random.default_rng(split).choice(np.arange(900)[new], NEW, p=ratio[new] / ratio[new].sum())
    weighted = conformal_sets(p[old], y[old], weights=ratio[old])
    note("weighted, shifted rows", weighted.sets(p[drawn], LEVEL, new_weights=ratio[drawn]), drawn)
    return found


def numbers(split: int) -> tuple[ndarray, ndarray, ndarray]:
    """Features, targets and the deviation of their noise, which grows with the first feature."""
    generator = np.random.default_rng([split, 2])
    X = generator.normal(size=(900, 4))
    scale = 0.3 + np.abs(X[:, 0])
    return X, X.sum(1) + np.sin(2 * X[:, 1]) + scale * generator.normal(size=900), scale


def line(X: ndarray, y: ndarray, new: ndarray) -> ndarray:
    """Predictions of least squares."""
    return np.c_[new, np.ones(len(new))] @ np.linalg.lstsq(np.c_[X, np.ones(len(X))], y, rcond=None)[0]


def intervals(split: int) -> Measured:
    """Coverage and mean width of every kind of interval."""
    X, y, scale = numbers(split)
    train, old, new = slice(0, 450), slice(450, 450 + CALIBRATION), slice(900 - NEW, 900)
    p = line(X[train], y[train], X)
    found: Measured = {}

    def note(name: str, ends: tuple[ndarray, ndarray], rows: ndarray = FRESH) -> None:
        inside = (ends[0] <= y[rows]) & (y[rows] <= ends[1])
        found[name] = float(inside.mean()), float((ends[1] - ends[0]).mean())

    note("split", split_intervals(p[old], y[old], p[new], LEVEL))
    note("normalised", split_intervals(p[old], y[old], p[new], LEVEL, scale=scale[old], new_scale=scale[new]))
    low, high = p - 1.6 * scale, p + 1.6 * scale
    note("conformalised quantiles", cqr_intervals(low[old], high[old], y[old], low[new], high[new], LEVEL))
    group = np.where(scale > 1, "wild", "calm")
    note("by group", split_intervals(p[old], y[old], p[new], LEVEL, groups=group[old], new_groups=group[new]))
    few, fold = slice(0, 200), np.arange(200) % 5
    models = np.stack([line(X[few][fold != k], y[few][fold != k], X) for k in range(5)])
    note("CV+", cv_plus(models[fold, np.arange(200)], y[few], fold, models[:, new], LEVEL))
    own, fresh = leave_one_out_linear(X[few], y[few], X[new])
    note("jackknife+", jackknife_plus(own, y[few], fresh, LEVEL))
    note("jackknife, min and max", jackknife_minmax(own, y[few], fresh, LEVEL))
    ratio = np.exp(0.7 * scale)
    drawn = np.random.default_rng(split).choice(np.arange(900)[new], NEW, p=ratio[new] / ratio[new].sum())
    more = {"weights": ratio[old], "new_weights": ratio[drawn]}
    note("weighted, shifted rows", split_intervals(p[old], y[old], p[drawn], LEVEL, **more), drawn)
    stream = AdaptiveConformal(LEVEL, rate=0.02)
    wide = []
    for t, error in enumerate(np.abs(y - p)[450:]):
        # The noise trebles half way.
        limit = stream.limit()
        wide.append(2 * limit if np.isfinite(limit) else np.nan)
        stream.update(error * (1 if t < 225 else 3))
    found["adaptive, noise trebles"] = stream.coverage, float(np.nanmean(wide))
    return found
