"""Calibration errors equal netcal's and scikit-learn's; the Brier score is the exact sum of its parts."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from wonderland.core import WonderlandError
from wonderland.trust import (
    bootstrap,
    brier,
    brier_decomposition,
    classwise_ece,
    ece,
    maximum_calibration_error,
    reliability,
)
from wonderland.trust.calibration import binned, folded_mean


def drawn(rows=1500, classes=4, seed=0, sharp=1.5):
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(rows, classes))
    truth = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    y = np.array([generator.choice(classes, p=row) for row in truth])
    claimed = np.exp(sharp * logits)
    return claimed / claimed.sum(1, keepdims=True), y


@pytest.fixture(scope="module")
def netcal():
    """Not among the packages for tests: it brings a package `examples` of its own, which hides ours. To compare:
    pip install --no-deps --target FOLDER netcal, remove FOLDER/examples, PYTHONPATH=FOLDER pytest ..."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("netcal.metrics")


@pytest.mark.parametrize("bins", [5, 10, 15, 20])
@pytest.mark.parametrize("equal_mass", [False, True])
@pytest.mark.parametrize("classes", [2, 4, 10])
def test_equal_to_netcal(netcal, bins, equal_mass, classes):
    p, y = drawn(classes=classes, seed=bins)
    settings = {"bins": bins, "equal_intervals": not equal_mass}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = netcal.ECE(**settings).measure(p, y), netcal.MCE(**settings).measure(p, y)
        apart = [netcal.ECE(**settings).measure(p[:, k], (y == k).astype(int)) for k in range(classes)]
    if classes == 2:  # netcal then bins the probability of class 1, right or wrong: that is the class-wise error
        assert classwise_ece(p, y, bins=bins, equal_mass=equal_mass)[1] == pytest.approx(theirs[0], abs=1e-9)
        return
    assert ece(p, y, bins=bins, equal_mass=equal_mass) == pytest.approx(theirs[0], abs=1e-9)
    assert maximum_calibration_error(p, y, bins=bins, equal_mass=equal_mass) == pytest.approx(theirs[1], abs=1e-9)
    assert classwise_ece(p, y, bins=bins, equal_mass=equal_mass) == pytest.approx(apart, abs=1e-9)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_equal_those_of_scikit_learn(strategy):
    p, y = drawn(classes=2)
    true, claimed = calibration_curve(y, p[:, 1], n_bins=12, strategy=strategy)
    found = binned(p[:, 1], y.astype(float), 12, strategy == "quantile")
    assert [b.accuracy for b in found] == pytest.approx(true, abs=1e-9)
    assert [b.confidence for b in found] == pytest.approx(claimed, abs=1e-9)


def test_the_debiased_error_is_nearer_to_the_truth():
    """Calibrated predictions: the plain error is all bias, and most of it goes."""
    plain, less, square, less_square = [], [], [], []
    for seed in range(40):
        p, y = drawn(rows=400, seed=seed, sharp=1.0)
        plain.append(ece(p, y, equal_mass=True))
        less.append(ece(p, y, equal_mass=True, debiased=True))
        square.append(ece(p, y, equal_mass=True, norm=2))
        less_square.append(ece(p, y, equal_mass=True, norm=2, debiased=True))
    assert np.mean(less) < 0.65 * np.mean(plain)
    assert np.mean(less_square) < 0.5 * np.mean(square)


def test_the_folded_normal():
    for gap, wide in ((0.0, 1.0), (0.1, 0.2), (-0.3, 0.1)):
        assert folded_mean(gap, wide) == pytest.approx(stats.foldnorm(abs(gap) / wide, scale=wide).mean(), abs=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 6), st.sampled_from([None, 1, 3, 15]), st.booleans())
@settings(deadline=None, max_examples=60)
def test_the_parts_of_brier_sum_exactly(seed, classes, bins, equal_mass):
    p, y = drawn(rows=30, classes=classes, seed=seed)
    if seed % 2:
        p = np.round(p, 1) + 1e-3
        p /= p.sum(1, keepdims=True)
    parts = brier_decomposition(p, y, bins=bins, equal_mass=equal_mass)
    assert parts.total == pytest.approx(parts.score, abs=1e-14)
    assert parts.score == pytest.approx(brier(p, y), abs=1e-15)
    assert min(parts.reliability, parts.resolution, parts.uncertainty, parts.within_variance) >= 0
    if bins is None:
        assert parts.within_variance == pytest.approx(0, abs=1e-20)


def test_brier_is_scikit_learns():
    p, y = drawn(classes=2)
    assert brier(p, y) == pytest.approx(2 * brier_score_loss(y, p[:, 1]), abs=1e-12)


def test_bootstrap_is_scipys_up_to_chance():
    x = np.random.default_rng(0).exponential(size=200)
    ours = bootstrap(lambda a: float(a.mean()), x, draws=4000)
    theirs = stats.bootstrap((x,), np.mean, n_resamples=4000, method="percentile", rng=0).confidence_interval
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=0.02)
    assert bootstrap(lambda a: float(a.mean()), x, draws=50) == bootstrap(lambda a: float(a.mean()), x, draws=50)


def test_basic_intervals_allow_for_the_bias_of_calibration_errors():
    """Calibrated predictions: resampling raises the error, and the basic interval reaches zero all the same."""
    p, y = drawn(rows=500, sharp=1.0)
    plain, basic = (bootstrap(lambda q, t: ece(q, t), p, y, draws=200, method=name) for name in ("percentile", "basic"))
    assert plain.low > 0
    assert basic.low <= 0.01
    assert basic.low <= basic.value <= basic.high + 0.05


def test_bootstrap_covers():
    generator = np.random.default_rng(1)
    for method in ("percentile", "basic"):
        hits = 0
        for seed in range(200):
            x = generator.normal(size=60)
            found = bootstrap(lambda a: float(a.mean()), x, draws=200, level=0.9, seed=seed, method=method)
            hits += found.low <= 0 <= found.high
        assert 0.83 < hits / 200 < 0.96


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: brier([[0.5, 0.6]], [0]), "`probabilities` sums to 1.1 in row 0: probabilities of classes sum to 1."),
        (lambda: ece([[-0.5, 1.5]], [0]), "`probabilities` holds -0.5: probabilities lie between 0 and 1."),
        (lambda: ece([[0.5, 0.5]], [2]), "`y` holds 2 at row 0: labels are whole numbers from 0 to 1."),
        (lambda: ece([[0.5, 0.5]], [0, 1]), "`y` has 2 rows where `probabilities` has 1."),
        (lambda: ece([[0.5, np.inf]], [0]), "`probabilities` holds inf at row 0: only finite numbers can be used."),
        (lambda: ece(np.zeros((0, 2)), []), "`probabilities` is empty."),
        (lambda: ece([["a", "b"]], [0]), "`probabilities` is not made of numbers."),
        (
            lambda: ece([[1.0]], [0]),
            "`probabilities` has shape (1, 1): it needs a row for each example and a column for each class.",
        ),
        (lambda: ece([[0.5, 0.5]], [[0]]), "`y` has shape (1, 1) and needs 1 axis."),
        (lambda: ece([[0.5, 0.5]], [0], bins=0), "`bins` has to be a whole number of at least 1, not 0."),
        (lambda: ece([[0.5, 0.5]], [0], norm=3), "`norm` is 1 (absolute errors) or 2 (squared errors), not 3."),
        (lambda: bootstrap(np.mean), "`bootstrap` needs at least one array of rows."),
        (lambda: bootstrap(np.mean, [1.0]), "A bootstrap interval needs two rows or more, not 1."),
        (lambda: bootstrap(np.mean, [1.0, 2.0], [1.0]), "`array 2` has 1 rows where `array 1` has 2."),
        (
            lambda: bootstrap(np.mean, [1.0, 2.0], method="t"),
            "`method` is 'percentile' or 'basic', not 't'.",
        ),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words


def test_constant_predictions_and_a_single_class():
    p = np.tile([0.25, 0.25, 0.5], (10, 1))
    assert len(reliability(p, np.full(10, 2), equal_mass=True)) == 1
    assert ece(p, np.full(10, 2)) == pytest.approx(0.5)
    assert brier_decomposition(p, np.full(10, 2)).uncertainty == 0
