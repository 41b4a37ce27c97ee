"""Effects of levels with few rows: by shrinkage, from each member's own rows, and better than one-hot ridge."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.preprocessing import OneHotEncoder

from wonderland import Regressor
from wonderland.kinds.table.level_effects import PENALTIES, Effects, output_scores, ridge, shrunken


def test_a_level_keeps_the_share_of_its_mean_that_is_not_noise():
    random = np.random.default_rng(0)
    codes = np.repeat(np.arange(400), 5)
    truth = random.normal(0, 2.0, 400)
    residual = (truth[codes] + random.normal(0, 1.0, len(codes)))[:, None]
    rows = np.bincount(codes).astype(float)
    effects = shrunken(residual, codes, rows, np.ones(len(codes)))[:, 0]
    means = np.bincount(codes, residual[:, 0]) / rows
    np.testing.assert_allclose(effects / means, 5 / (5 + 1 / 4), atol=0.02)


def test_numbers_and_two_large_categories_are_told_apart():
    random = np.random.default_rng(1)
    x, codes = random.normal(size=(4000, 1)), random.integers(0, [50, 30], (4000, 2))
    first, second = random.normal(size=50), random.normal(size=30)
    y = x[:, 0] + first[codes[:, 0]] + second[codes[:, 1]]
    effects = Effects.of(x, codes, [50, 30], (y - y.mean())[:, None], np.ones(4000)).levels
    for own, truth in zip(effects, (first, second), strict=True):
        assert own is not None
        assert np.corrcoef(own[:, 0], truth)[0, 1] > 0.999
    assert Effects.of(x, codes, [50, 3], y[:, None], np.ones(4000)).levels[1] is None


def test_classes_become_steps_from_their_shares():
    scores = output_scores(np.array([0, 0, 0, 1]), np.ones(4), 2)
    np.testing.assert_allclose(scores, [[1 / 3, -1], [1 / 3, -1], [1 / 3, -1], [-1, 3]])


@pytest.mark.parametrize("rows", [1500, 4500])
def test_many_shops_of_few_rows_are_learned_as_well_as_by_ridge(rows):
    random = np.random.default_rng(0)
    shop, effect = random.integers(0, 600, rows), random.normal(size=600)
    frame = pd.DataFrame({"shop": [f"shop {i}" for i in shop], "price": random.normal(size=rows)})
    y = effect[shop] + 0.5 * frame["price"] + random.normal(0, 0.3, rows)
    train, test = slice(0, int(0.8 * rows)), slice(int(0.8 * rows), None)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(frame[train][["shop"]])

    def design(part):
        return np.c_[encoder.transform(frame[part][["shop"]]), frame[part]["price"]]

    ridge = Ridge().fit(design(train), y[train]).predict(design(test))
    ours = Regressor().fit(frame[train], y[train]).predict(frame[test])
    errors = [float(np.sqrt(np.mean((predicted - y[test]) ** 2))) for predicted in (ours, ridge)]
    assert errors[0] < 1.05 * errors[1]


@pytest.mark.parametrize("columns", [5, 60])
def test_the_line_is_the_ridge_regression_of_least_leave_one_out_error(columns):
    random = np.random.default_rng(2)
    x, weights = random.normal(3, 2, (40, columns)), random.uniform(0.5, 2, 40)
    y = x[:, :1] - x[:, 1:2] + random.normal(0, 3, (40, 1))
    line, constant = ridge(x, y, np.ones(40))
    peer = RidgeCV(PENALTIES).fit(x, y[:, 0])
    assert line[:, 0] == pytest.approx(peer.coef_, rel=1e-6)
    assert constant == pytest.approx(peer.intercept_, rel=1e-6)
    line, constant = ridge(x[:, :5], y, weights * 1e-3)
    residual = (y - x[:, :5] @ line - constant) * weights[:, None]
    assert residual.sum() == pytest.approx(0, abs=1e-9)


def test_small_linear_tables_are_learned_as_well_as_by_ridge():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(400, 10)), columns=list("abcdefghij"))
    y = frame.to_numpy() @ random.normal(size=10) + random.normal(size=400)
    train, test = slice(0, 300), slice(300, None)
    ours, peer = (model.fit(frame[train], y[train]).predict(frame[test]) for model in (Regressor(), Ridge()))
    errors = [float(np.sqrt(np.mean((predicted - y[test]) ** 2))) for predicted in (ours, peer)]
    assert errors[0] < 1.04 * errors[1]
