"""Intervals hold the truth as often as they say, follow the noise where they are told it, and equal MAPIE's."""

import warnings

import numpy as np
import pytest

from wonderland.core import WonderlandError
from wonderland.trust import (
    AdaptiveConformal,
    cqr_intervals,
    cv_plus,
    jackknife_minmax,
    jackknife_plus,
    leave_one_out_linear,
    split_intervals,
)
from wonderland.trust.conformal_intervals import expected_coverage_bounds


def drawn(rows, seed, features=4):
    """Rows whose noise grows with the first feature."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, features))
    scale = 0.3 + np.abs(X[:, 0])
    return X, X @ np.ones(features) + scale * generator.normal(size=rows), scale


def fitted(X, y, new):
    design = np.c_[X, np.ones(len(X))]
    return np.c_[new, np.ones(len(new))] @ np.linalg.lstsq(design, y, rcond=None)[0]


def inside(ends, y):
    return ((ends[0] <= y) & (y <= ends[1])).mean()


def width(ends):
    return np.mean(ends[1] - ends[0])


METHODS = {}


def method(function):
    METHODS[function.__name__] = function
    return function


@method
def split(X, y, scale, new, new_scale):
    return split_intervals(fitted(X[:100], y[:100], X[100:]), y[100:], fitted(X[:100], y[:100], new), 0.9)


@method
def normalised(X, y, scale, new, new_scale):
    return split_intervals(
        fitted(X[:100], y[:100], X[100:]),
        y[100:],
        fitted(X[:100], y[:100], new),
        0.9,
        scale=scale[100:],
        new_scale=new_scale,
    )


@method
def quantile(X, y, scale, new, new_scale):
    own, fresh = fitted(X[:100], y[:100], X[100:]), fitted(X[:100], y[:100], new)
    return cqr_intervals(
        own - 1.6 * scale[100:], own + 1.6 * scale[100:], y[100:], fresh - 1.6 * new_scale, fresh + 1.6 * new_scale, 0.9
    )


@method
def quantile_asymmetric(X, y, scale, new, new_scale):
    own, fresh = fitted(X[:100], y[:100], X[100:]), fitted(X[:100], y[:100], new)
    ends = (own - 1.6 * scale[100:], own + 1.6 * scale[100:], y[100:], fresh - 1.6 * new_scale, fresh + 1.6 * new_scale)
    return cqr_intervals(*ends, 0.9, symmetric=False)


@method
def folds(X, y, scale, new, new_scale):
    fold = np.arange(len(y)) % 5
    own = np.empty(len(y))
    for k in range(5):
        own[fold == k] = fitted(X[fold != k], y[fold != k], X[fold == k])
    return cv_plus(own, y, fold, np.stack([fitted(X[fold != k], y[fold != k], new) for k in range(5)]), 0.9)


@method
def jackknife(X, y, scale, new, new_scale):
    own, fresh = leave_one_out_linear(X, y, new)
    return jackknife_plus(own, y, fresh, 0.9)


@pytest.mark.parametrize("name", ["split", "normalised", "quantile", "quantile_asymmetric", "folds", "jackknife"])
def test_coverage_over_two_hundred_splits(name):
    hits, wide = [], []
    for seed in range(200):
        X, y, scale = drawn(400, seed)
        ends = METHODS[name](X[:200], y[:200], scale[:200], X[200:], scale[200:])
        hits.append(inside(ends, y[200:]))
        wide.append(width(ends))
    error = np.std(hits) / np.sqrt(200)
    above = {"quantile_asymmetric": 2 / 101}.get(name, 1 / 101)
    assert 0.9 - 3 * error <= np.mean(hits) <= 0.9 + above + 3 * error


def test_widths_follow_the_noise():
    X, y, scale = drawn(4000, 0)
    new = slice(2000, 4000)
    calm, wild = scale[new] < 0.6, scale[new] > 1.5
    for name in ("normalised", "quantile"):
        low, high = METHODS[name](X[:2000], y[:2000], scale[:2000], X[new], scale[new])
        for rows in (calm, wild):
            assert inside((low[rows], high[rows]), y[new][rows]) == pytest.approx(0.9, abs=0.05)
    low, high = split(X[:2000], y[:2000], scale[:2000], X[new], scale[new])
    assert inside((low[wild], high[wild]), y[new][wild]) < 0.8


def test_groups_and_weights():
    X, y, scale = drawn(4000, 1)
    prediction = X @ np.ones(4)
    group = np.where(scale > 1, "wild", "calm")
    old, new = slice(0, 2000), slice(2000, 4000)
    ends = split_intervals(prediction[old], y[old], prediction[new], 0.9, groups=group[old], new_groups=group[new])
    for name in ("wild", "calm"):
        rows = group[new] == name
        assert inside((ends[0][rows], ends[1][rows]), y[new][rows]) == pytest.approx(0.9, abs=0.04)
    unseen = split_intervals(prediction[old], y[old], prediction[new][:1], 0.9, groups=group[old], new_groups=["other"])
    assert np.isinf(unseen[1]).all()
    ratio = np.exp(scale)
    chosen = np.random.default_rng(0).choice(np.arange(2000, 4000), 1000, p=ratio[new] / ratio[new].sum())
    plain = split_intervals(prediction[old], y[old], prediction[chosen], 0.9)
    held = split_intervals(
        prediction[old], y[old], prediction[chosen], 0.9, weights=ratio[old], new_weights=ratio[chosen]
    )
    assert inside(plain, y[chosen]) < 0.87
    assert inside(held, y[chosen]) == pytest.approx(0.9, abs=0.04)


def test_leave_one_out_by_hand():
    X, y, _ = drawn(30, 2)
    own, new = leave_one_out_linear(X, y, X[:5])
    for i in range(30):
        kept = np.arange(30) != i
        assert own[i] == pytest.approx(fitted(X[kept], y[kept], X[i : i + 1])[0], abs=1e-10)
        assert new[i] == pytest.approx(fitted(X[kept], y[kept], X[:5]), abs=1e-10)


def test_equal_to_mapie():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        regression = pytest.importorskip("mapie.regression")
        from sklearn.linear_model import LinearRegression
        from sklearn.model_selection import KFold, LeaveOneOut

        X, y, _ = drawn(160, 3)
        new = X[120:]
        peer = regression.SplitConformalRegressor(
            LinearRegression().fit(X[:60], y[:60]), confidence_level=0.9, prefit=True
        )
        theirs = peer.conformalize(X[60:120], y[60:120]).predict_interval(new)[1][:, :, 0]
        ours = split_intervals(fitted(X[:60], y[:60], X[60:120]), y[60:120], fitted(X[:60], y[:60], new), 0.9)
        assert np.stack(ours, 1) == pytest.approx(theirs, abs=1e-9)
        for cv in (KFold(5), LeaveOneOut()):
            for kind, function in (("plus", cv_plus), ("minmax", None)):
                peer = regression.CrossConformalRegressor(LinearRegression(), confidence_level=0.9, method=kind, cv=cv)
                theirs = peer.fit_conformalize(X[:120], y[:120]).predict_interval(new)[1][:, :, 0]
                fold, own, fresh = np.empty(120, int), np.empty(120), []
                for k, (seen, left) in enumerate(cv.split(X[:120])):
                    fold[left], own[left] = k, fitted(X[seen], y[seen], X[left])
                    fresh.append(fitted(X[seen], y[seen], new))
                if function is None:
                    ours = jackknife_minmax(own, y[:120], np.stack(fresh), 0.9)
                else:
                    ours = cv_plus(own, y[:120], fold, np.stack(fresh), 0.9)
                ends = np.stack(ours, 1)
                assert (ends[:, 1] - ends[:, 0]).mean() <= (theirs[:, 1] - theirs[:, 0]).mean() + 1e-9
                assert ends == pytest.approx(theirs, abs=0.05 if kind == "plus" else 1e-9)


def test_a_stream_that_changes_is_covered():
    """The noise grows tenfold half way: a fixed quantile loses its level, the adaptive one keeps it."""
    generator = np.random.default_rng(0)
    errors = np.abs(np.concatenate([generator.normal(size=2000), 10 * generator.normal(size=2000)]))
    fixed, steered = AdaptiveConformal(0.9, rate=0.0, window=None), AdaptiveConformal(0.9, rate=0.02)
    late = {"fixed": 0, "steered": 0}
    for t, error in enumerate(errors):
        for name, stream in (("fixed", fixed), ("steered", steered)):
            hit = stream.update(error)
            late[name] += t >= 2000 and not hit
    assert late["fixed"] / 2000 > 0.13
    assert abs(late["steered"] / 2000 - 0.1) < 0.02
    assert abs(steered.coverage - 0.9) <= (0.9 + 0.02) / (0.02 * 4000)


def test_a_stream_against_an_adversary_keeps_its_bound():
    stream = AdaptiveConformal(0.9, rate=0.05)
    generator = np.random.default_rng(0)
    for _ in range(3000):
        limit = stream.limit()
        stream.update(limit + 1 if np.isfinite(limit) and generator.random() < 0.5 else 0.0)
    assert abs(stream.coverage - 0.9) <= (0.9 + 0.05) / (0.05 * 3000) + 1e-9
    again = AdaptiveConformal.from_json(stream.to_json())
    assert again.limit() == stream.limit()
    assert again.coverage == stream.coverage
    assert AdaptiveConformal(0.9).interval(1.0) == (-np.inf, np.inf)


def test_bounds_of_the_theory():
    assert expected_coverage_bounds(0.9, 5) == (1.0, 1.0)
    ends = split_intervals([0.0] * 5, [1.0] * 5, [0.0], 0.9)
    assert np.isinf(ends[0]).all()


def test_quantiles_that_cross_meet():
    low, high = cqr_intervals(np.zeros(50), np.full(50, 10.0), np.full(50, 5.0), [0.0], [1.0], 0.9)
    assert low[0] == high[0] == 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: split_intervals([0.0], [0.0, 1.0], [0.0], 0.9), "`y` has 2 rows where `prediction` has 1."),
        (
            lambda: split_intervals([0.0], [0.0], [0.0], 0.9, scale=[1.0]),
            "Pass both `scale` and `new_scale`, or neither.",
        ),
        (
            lambda: split_intervals([0.0], [0.0], [0.0], 0.9, scale=[0.0], new_scale=[1.0]),
            "`scale` holds 0: scales are above 0.",
        ),
        (
            lambda: split_intervals([0.0], [0.0], [0.0], 0.9, groups=[1]),
            "Pass both `groups` and `new_groups`, or neither.",
        ),
        (
            lambda: split_intervals([0.0], [0.0], [0.0], 0.9, weights=[1.0]),
            "Pass both `weights` and `new_weights`, or neither.",
        ),
        (
            lambda: split_intervals(
                [0.0], [0.0], [0.0], 0.9, weights=[1.0], new_weights=[1.0], groups=[1], new_groups=[1]
            ),
            "Weights and groups cannot be combined.",
        ),
        (
            lambda: leave_one_out_linear([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], [1.0, 2.0, 3.0], [[1.0, 1.0]]),
            "Columns of `X` are combinations of others: drop them, or pass ridge > 0.",
        ),
        (
            lambda: leave_one_out_linear([[0.0], [0.0], [1.0]], [1.0, 2.0, 3.0], [[1.0]]),
            "Row 2 decides its own prediction: without it the model has no answer.",
        ),
        (lambda: AdaptiveConformal(0.9, rate=-1), "`rate` has to be 0 or more, not -1."),
        (lambda: AdaptiveConformal(0.9, window=0), "`window` has to be at least 1, not 0."),
        (lambda: AdaptiveConformal(0.9).update(float("nan")), "A score has to be a finite number, not nan."),
        (lambda: AdaptiveConformal.from_json({}), "The state of the stream cannot be read: the file is damaged."),
        (
            lambda: split_intervals([0.0], [np.inf], [0.0], 0.9),
            "`y` holds inf at row 0: only finite numbers can be used.",
        ),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words
