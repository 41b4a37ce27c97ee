import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wonderland.core import WonderlandError
from wonderland.trust import Scores, check_level, misfit


def test_split_coverage_lies_where_theory_says():
    """Mean coverage of split conformal prediction is between 1 - alpha and 1 - alpha + 1 / (n + 1)."""
    generator = np.random.default_rng(0)
    for level, count in ((0.8, 99), (0.9, 49), (0.95, 199)):
        found = []
        for _ in range(400):
            scores = Scores.of(generator.normal(size=count), np.zeros(count, int))
            new = generator.normal(size=(1, 500, 1))
            found.append(scores.sets(new, level).mean())
        assert level - 0.01 <= np.mean(found) <= level + 1 / (count + 1) + 0.01


def test_intervals_are_symmetric_quantiles():
    scores = Scores.of(np.arange(1.0, 100.0), np.zeros(99, int))
    low, high = scores.intervals(np.array([[0.0, 5.0]]), 0.9)
    assert high.tolist() == [90.0, 95.0]
    assert low.tolist() == [-90.0, -85.0]


def test_folds_with_equal_predictions_are_the_split_rule():
    generator = np.random.default_rng(0)
    values = np.abs(generator.normal(size=200))
    split, folds = Scores.of(values, np.zeros(200, int)), Scores.of(values, np.arange(200) % 5)
    centre = generator.normal(size=30)
    for level in (0.5, 0.9, 0.95):
        one, two = split.intervals(centre[None], level), folds.intervals(np.tile(centre, (5, 1)), level)
        assert np.allclose(one, two)
    candidates = np.abs(generator.normal(size=(30, 4)))
    assert (split.sets(candidates[None], 0.9) == folds.sets(np.tile(candidates, (5, 1, 1)), 0.9)).all()


def test_cross_intervals_by_hand():
    scores = Scores((np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    low, high = scores.intervals(np.array([[0.0], [10.0]]), 0.6)  # ends 1, 2, 13, 14 and -1, -2, 7, 6; rank 3 of 4
    assert (low.item(), high.item()) == (-1.0, 13.0)


def test_too_few_rows_keep_everything_and_say_so():
    scores = Scores.of(np.array([0.1, 0.2]), np.zeros(2, int))
    assert not scores.enough(0.9)
    assert scores.sets(np.array([[[99.0, 0.0]]]), 0.9).all()
    low, high = scores.intervals(np.array([[1.0]]), 0.9)
    assert np.isinf(low).all()
    assert np.isinf(high).all()
    assert scores.note(0.9) == (
        "2 calibration rows are too few for a level of 0.9: at least 9 are needed, so every candidate is kept."
    )
    assert scores.note(0.5) == ""
    assert Scores.of(np.arange(9.0), np.zeros(9, int)).note(0.9) == ""


@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=st.floats(-600, 600)))
@settings(deadline=None)
def test_misfit_orders_classes_as_probability_does_and_never_ties_by_rounding(logits):
    found = misfit(logits)
    assert np.isfinite(found).all()
    for row, scores in zip(logits, found, strict=True):
        for a in range(len(row)):
            for b in range(len(row)):
                if row[a] > row[b] + 1e-6:
                    assert scores[a] < scores[b]


def test_misfit_is_minus_the_logit():
    p = np.array([[0.7, 0.2, 0.1]])
    assert misfit(np.log(p)) == pytest.approx(-np.log(p / (1 - p)))
    certain = misfit(np.array([[800.0, 0.0], [900.0, 0.0]]))
    assert certain[0, 0] > certain[1, 0]


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, float("nan")])
def test_wrong_levels_are_refused(level):
    with pytest.raises(WonderlandError) as caught:
        check_level(level)
    assert str(caught.value) == f"The level of sets and intervals is a share between 0 and 1, such as 0.9, not {level}."


@pytest.mark.parametrize("value", [None, [], [1.0], [["a"]], [[float("nan")]], [[[1.0]]], {"a": 1}, 3])
def test_damaged_scores_are_refused(value):
    with pytest.raises(WonderlandError, match="must be lists of finite numbers"):
        Scores.from_json(value)


def test_scores_round_trip():
    scores = Scores((np.array([1.0, 2.0]), np.array([0.5])))
    again = Scores.from_json(scores.to_json())
    assert all((a == b).all() for a, b in zip(scores.groups, again.groups, strict=True))


def test_agrees_with_mapie_formula_for_absolute_residuals():
    """The finite-sample quantile: the ceil((n + 1) level)-th smallest residual."""
    generator = np.random.default_rng(3)
    residuals = np.abs(generator.normal(size=57))
    scores = Scores.of(residuals, np.zeros(57, int))
    _, high = scores.intervals(np.zeros((1, 1)), 0.9)
    assert high.item() == np.sort(residuals)[int(np.ceil(58 * 0.9)) - 1]


def test_weighted_scores_cover_rows_that_come_otherwise():
    """With density ratios as weights the level holds for the new rows, for which equal weights cover too little; equal weights change nothing."""
    generator = np.random.default_rng(0)
    weighted, plain = [], []
    for _ in range(200):
        x, new = generator.normal(size=300), generator.normal(1.0, 1.0, 300)
        scores = np.abs(generator.normal(size=300)) * np.exp(x / 2)
        target = np.abs(generator.normal(size=300)) * np.exp(new / 2)
        ratio = np.minimum(np.exp(x - 0.5), 50)
        ones, fold = np.zeros(300, int), generator.integers(0, 3, 300)
        for values, found in ((ratio, weighted), (None, plain)):
            kept = Scores.of(scores, ones, 1, values).sets(target[None, :, None], 0.9)[:, 0]
            assert (kept == (target <= Scores.of(scores, ones, 1, values).intervals(np.zeros((1, 1)), 0.9)[1])).all()
            found.append(kept.mean())
        several, equal = Scores.of(scores, fold), Scores.of(scores, fold, None, np.full(300, 2.0))
        centres = generator.normal(size=(3, 4))
        assert np.allclose(several.intervals(centres, 0.9), equal.intervals(centres, 0.9))
        assert np.allclose(several.cross_p_values(centres[..., None]), equal.cross_p_values(centres[..., None]))
    error = np.std(weighted) / 200**0.5
    assert np.mean(plain) < 0.85
    assert abs(np.mean(weighted) - 0.9) < 0.01 + 3 * error


def test_weighted_scores_are_read_back_and_damaged_weights_are_refused():
    scores = Scores.of(np.array([0.3, 0.1, 0.2]), np.array([0, 1, 0]), None, np.array([1.0, 2.0, 3.0]))
    saved = scores.to_json()
    assert saved == {"scores": [[0.2, 0.3], [0.1]], "weights": [[3.0, 1.0], [2.0]]}
    assert Scores.from_json(saved).to_json() == saved
    assert "which weigh as much as 2.6 equal ones, are too few for a level of 0.9" in scores.note(0.9)
    for weights in ([[1.0], [1.0]], [[-1.0, 1.0], [1.0]], [[0.0, 0.0], [0.0]], [["a", 1.0], [1.0]]):
        with pytest.raises(WonderlandError, match="The calibration scores must be lists of finite numbers"):
            Scores.from_json(saved | {"weights": weights})
