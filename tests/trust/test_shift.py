"""Tests of shift hold their level and find planted changes; label shift is estimated; streams raise alarms in time."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from wonderland.core import WonderlandError
from wonderland.trust import (
    Adwin,
    PageHinkley,
    auc,
    benjamini_hochberg,
    black_box_shift,
    classifier_test,
    column_shift,
    density_ratio,
    em_shift,
    holm,
    log_softmax,
    mmd_test,
)
from wonderland.trust.conformal import misfit
from wonderland.trust.label_shift import LabelScores
from wonderland.trust.shift import comparable


def samples(generator, shift=0.0, rows=60):
    return generator.normal(size=(rows, 3)), generator.normal(shift, 1, (rows, 3))


def table(generator, rows=80, shift=0.0):
    x = generator.normal(shift, 1, rows)
    return {
        "x": x,
        "twin": x + 0.1 * generator.normal(size=rows),
        "small": generator.integers(0, 3, rows),
        "town": generator.choice(["Oslo", "Rome", "Bonn"], rows),
        "gaps": np.where(generator.random(rows) < 0.2, np.nan, generator.normal(size=rows)),
    }


TESTS = {
    "classifier": lambda g, s: classifier_test(*samples(g, s), draws=200, seed=int(g.integers(1e9))).p_value,
    "mmd": lambda g, s: mmd_test(*samples(g, s, 40), draws=200, seed=int(g.integers(1e9))).p_value,
    "columns": lambda g, s: min(
        c.corrected for c in column_shift(table(g), table(g, shift=s), draws=200, seed=int(g.integers(1e9)))
    ),
}


@pytest.mark.parametrize("name", TESTS)
def test_the_level_is_held(name):
    generator = np.random.default_rng(1)
    alarms = np.mean([TESTS[name](generator, 0.0) <= 0.05 for _ in range(300)])
    assert 0.015 <= alarms <= 0.095  # 0.05 and three and a half standard errors


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTS)
def test_the_level_is_held_over_two_thousand_draws(name):
    generator = np.random.default_rng(0)
    alarms = np.mean([TESTS[name](generator, 0.0) <= 0.05 for _ in range(2000)])
    print(f"{name}: {alarms:.4f}")
    assert 0.035 <= alarms <= 0.065


@pytest.mark.parametrize(
    ("name", "shift", "power"), [("classifier", 1.0, 0.95), ("mmd", 1.0, 0.95), ("columns", 0.8, 0.9)]
)
def test_planted_shifts_are_found(name, shift, power):
    generator = np.random.default_rng(2)
    assert np.mean([TESTS[name](generator, shift) <= 0.05 for _ in range(60)]) >= power


def test_the_changed_column_is_named():
    generator = np.random.default_rng(0)
    old, new = pd.DataFrame(table(generator, 400)), pd.DataFrame(table(generator, 400))
    new["town"] = generator.choice(["Oslo", "Rome", "Bonn"], 400, p=[0.6, 0.2, 0.2])
    new["gaps"] = np.where(generator.random(400) < 0.5, np.nan, new["gaps"])
    found = {c.name: c for c in column_shift(old, new)}
    assert [name for name, c in found.items() if c.corrected <= 0.05] == ["town", "gaps"]
    assert found["town"].words.startswith("town: 'Oslo' made up ")
    assert "missing" in found["gaps"].words
    assert found["town"].kind == "category"
    assert found["x"].statistic == pytest.approx(stats.ks_2samp(old["x"], new["x"]).statistic)
    exact = stats.ks_2samp(old["x"], new["x"]).pvalue
    assert found["x"].p_value == pytest.approx(exact, abs=0.08)


def test_a_spread_that_changes_is_found_too():
    generator = np.random.default_rng(0)
    old, new = generator.normal(size=(200, 2)), 2 * generator.normal(size=(200, 2))
    assert classifier_test(old, new).p_value < 0.01
    assert mmd_test(old, new).p_value < 0.01


def test_corrections_are_scipys():
    p = np.random.default_rng(0).random(20) ** 2
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))
    order = np.argsort(p)
    by_hand = np.minimum(1, np.maximum.accumulate([p[k] * (20 - i) for i, k in enumerate(order)]))
    assert holm(p)[order] == pytest.approx(by_hand)


def test_every_correction_and_constant_columns():
    generator = np.random.default_rng(3)
    old, new = table(generator), table(generator)
    old["same"] = new["same"] = np.ones(80)
    for correction in ("permutation", "holm", "benjamini-hochberg", "none"):
        found = column_shift(old, new, correction=correction, draws=100)
        assert all(0 < c.p_value <= c.corrected + 1e-9 <= 1 + 1e-9 for c in found)
        assert found[-1].p_value == 1


def test_auc_is_that_of_ranks():
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 9, 40), generator.integers(3, 12, 50)
    assert auc(a, b) == pytest.approx(stats.mannwhitneyu(b, a).statistic / 2000)


def test_density_ratios_of_gaussians():
    generator = np.random.default_rng(0)
    old, new = generator.normal(size=(4000, 1)), generator.normal(0.8, 1, (4000, 1))
    places = np.linspace(-1, 2, 7)[:, None]
    truth = np.exp(0.8 * places[:, 0] - 0.32)
    assert density_ratio(old, new, places) == pytest.approx(truth, rel=0.15)
    assert density_ratio(old, new, old).mean() == pytest.approx(1)


def classified(shares, rows, seed):
    """Labels with these shares, and calibrated probabilities under equal shares."""
    generator = np.random.default_rng(seed)
    y = generator.choice(3, rows, p=shares)
    x = generator.normal(size=(rows, 3)) + 1.5 * np.eye(3)[y]
    return np.exp(log_softmax(1.5 * x)), y


def test_label_shift_is_estimated_and_corrected():
    p, y = classified([1 / 3] * 3, 4000, 0)
    wanted = [0.7, 0.2, 0.1]
    new, truth = classified(wanted, 4000, 1)
    for estimate in (black_box_shift, em_shift):
        found = estimate(p, y, new)
        assert found.new == pytest.approx(wanted, abs=0.03)
        assert found.weights == pytest.approx(found.new / found.old)
        before, after = ((q.argmax(1) == truth).mean() for q in (new, found.correct(new)))
        assert after > before + 0.02
    assert black_box_shift(p, y, new, soft=False).new == pytest.approx(wanted, abs=0.04)
    same, _ = classified([1 / 3] * 3, 4000, 2)
    assert em_shift(p, y, same).new == pytest.approx([1 / 3] * 3, abs=0.03)


def test_sets_weighted_by_class_cover_under_label_shift():
    """Sets of a classifier that leans to the first class, which becomes rare: without weights they cover far too little."""
    weighted, plain, before, after = [], [], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8]
    lean = np.array([2.0, 0.0, 0.0])
    for seed in range(60):
        p, y = classified(before, 300, seed)
        new, truth = classified(after, 300, 1000 + seed)
        scores, candidates = misfit(np.log(p) + lean)[np.arange(300), y], misfit(np.log(new) + lean)
        for weights, found in ((np.divide(after, before), weighted), (np.ones(3), plain)):
            kept = LabelScores(scores, y, weights).p_values(candidates) > 0.1
            found.append(kept[np.arange(300), truth].mean())
    assert np.mean(plain) < 0.7
    assert 0.9 - 3 * np.std(weighted) / 60**0.5 < np.mean(weighted) < 0.93


def test_a_class_that_is_gone_gets_no_negative_share():
    p, y = classified([1 / 3] * 3, 300, 0)
    new, _ = classified([0.5, 0.5, 0.0], 60, 5)
    for estimate in (black_box_shift, em_shift):
        found = estimate(p, y, new)
        assert found.new.min() >= 0
        assert found.new.sum() == pytest.approx(1)
    one = np.tile([1.0, 0.0, 0.0], (50, 1))
    shift = black_box_shift(p, y, one)
    assert shift.new.sum() == pytest.approx(1)
    assert np.isfinite(shift.correct(one)).all()


def test_page_hinkley_is_rivers():
    river = pytest.importorskip("river.drift")
    generator = np.random.default_rng(0)
    stream = np.concatenate(
        [generator.normal(0.2, 0.1, 1000), generator.normal(0.8, 0.1, 1000), generator.normal(0, 0.1, 1000)]
    )
    ours, theirs = PageHinkley(threshold=20.0), river.PageHinkley(threshold=20.0)
    alarms, others = [], []
    for t, value in enumerate(stream):
        if ours.update(value):
            alarms.append(t)
        theirs.update(float(value))
        if theirs.drift_detected:
            others.append(t)
    assert alarms == others
    assert len(alarms) == 2


def test_adwin_is_rivers():
    river = pytest.importorskip("river.drift")
    generator = np.random.default_rng(0)
    stream = (generator.random(6000) < np.repeat([0.1, 0.3, 0.3, 0.05, 0.5, 0.5], 1000)).astype(float)
    ours, theirs = Adwin(), river.ADWIN()
    alarms, others = [], []
    for t, value in enumerate(stream):
        if ours.update(value):
            alarms.append(t)
        theirs.update(float(value))
        if theirs.drift_detected:
            others.append(t)
    for start in (1000, 3000, 4000):
        assert any(start <= t < start + 200 for t in alarms)
        assert any(start <= t < start + 200 for t in others)
    assert ours.mean == pytest.approx(0.5, abs=0.06)


def test_quiet_streams_raise_no_alarm():
    generator = np.random.default_rng(1)
    alarms = 0
    for _ in range(20):
        window = Adwin()
        alarms += any(window.update(float(value)) for value in generator.random(1000) < 0.3)
    assert alarms <= 1
    assert not any(PageHinkley(direction="up").update(v) for v in generator.random(1000))


P, Y = classified([1 / 3] * 3, 30, 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: mmd_test([[1.0]], [[1.0, 2.0]]),
            "`old` has shape (1, 1) and `new` (1, 2): both need the same columns.",
        ),
        (lambda: classifier_test([1.0] * 5, [1.0] * 20), "`old` has 5 rows: this test needs at least 10."),
        (lambda: mmd_test([np.nan, 1.0, 1.0], [1.0] * 3), "`old` holds nan at row 0: only finite numbers can be used."),
        (
            lambda: density_ratio(np.ones((9, 1)), np.ones((9, 1)), [[1.0, 2.0]]),
            "`at` has 2 columns where `old` has 1.",
        ),
        (lambda: column_shift({"a": [1, 2]}, {"b": [1, 2]}), "`new` has no column 'a', which `old` has."),
        (lambda: column_shift({}, {}), "`old` has no columns."),
        (
            lambda: column_shift({"a": [1, 2]}, {"a": [1]}),
            "A test needs two rows in each table or more, not 2 and 1.",
        ),
        (
            lambda: column_shift({"a": [1, 2]}, {"a": [1, 2]}, correction="x"),
            "`correction` is one of permutation, holm, benjamini-hochberg, none, not 'x'.",
        ),
        (
            lambda: em_shift(P, np.zeros(30), P),
            "`y` has no row of class 1: its share cannot be estimated without labelled rows of it.",
        ),
        (
            lambda: em_shift(P, Y, [[0.5, 0.5]]),
            "`new_probabilities` has 2 classes where `probabilities` has 3.",
        ),
        (
            lambda: black_box_shift(np.tile([0.5, 0.3, 0.2], (30, 1)), Y, P),
            "The classifier's confusion matrix cannot be inverted: it does not tell some classes apart, so their shares "
            "cannot be estimated.",
        ),
        (lambda: Adwin(2.0), "`delta` has to lie strictly between 0 and 1, not at 2.0."),
        (lambda: Adwin().update(float("nan")), "A stream takes finite numbers, not nan."),
        (lambda: PageHinkley(direction="x"), "`direction` is 'up', 'down' or 'both', not 'x'."),
        (lambda: PageHinkley(threshold=0), "`threshold` has to be above 0, not 0."),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words


def test_rows_that_are_not_learned_from_decide_no_scale():
    draw = np.random.default_rng(0)
    old = {"x": draw.normal(size=60), "town": np.array(["Oslo", "Rome", "Bonn"] * 20)}
    new = {"x": draw.normal(size=30), "town": np.array(["Rome"] * 30)}
    rows = np.arange(40)
    other = {
        "x": np.where(np.arange(60) < 40, old["x"], 1e6),
        "town": np.where(np.arange(60) < 40, old["town"], "Graz"),
    }
    first, second = comparable(old, new, rows), comparable(other, new, rows)
    assert np.array_equal(first[0][rows], second[0][rows])
    assert np.array_equal(first[1], second[1])
    assert not np.array_equal(comparable(old, new)[1], comparable(other, new)[1])
