"""Calibrators: equal to outside implementations where there are some, safe on few rows, chosen by held-out log loss."""

import warnings

import numpy as np
import pytest
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from wonderland.core import WonderlandError
from wonderland.trust import (
    CALIBRATORS,
    Calibrator,
    beta_scaling,
    choose_calibrator,
    isotonic_regression,
    isotonic_scaling,
    log_softmax,
    matrix_scaling,
    platt_scaling,
    temperature_scaling,
    vector_scaling,
)
from wonderland.trust.choose_calibrator import log_loss


def drawn(rows=2000, classes=3, seed=0):
    generator = np.random.default_rng(seed)
    logits = 1.5 * generator.normal(size=(rows, classes))
    y = np.array([generator.choice(classes, p=row) for row in np.exp(log_softmax(logits))])
    return logits, y


@pytest.mark.parametrize("seed", range(5))
def test_isotonic_regression_is_scikit_learns(seed):
    generator = np.random.default_rng(seed)
    x, y, w = generator.integers(0, 40, 100) / 7, generator.normal(size=100), generator.random(100)
    new = generator.uniform(-1, 7, 50)
    for weights in (None, w):
        theirs = IsotonicRegression(out_of_bounds="clip").fit(x, y, sample_weight=weights).predict(new)
        assert np.interp(new, *isotonic_regression(x, y, weights)) == pytest.approx(theirs, abs=1e-9)


def test_platt_is_scikit_learns():
    logits, y = drawn(classes=2)
    odds = logits[:, 1] - logits[:, 0]
    # Theirs is -(a s + b) in a convention of its own, and stops at a tolerance of 1e-6 or so.
    a, b = _sigmoid_calibration(odds, y)
    assert platt_scaling(logits, y).arrays["weights"][0] == pytest.approx([-a, -b], abs=2e-4)


def test_beta_is_a_logistic_regression_on_two_logarithms():
    logits, y = drawn(classes=2)
    p = np.exp(log_softmax(2 * logits + [0.5, 0]))[:, 1]
    features = np.stack([np.log(p), -np.log1p(-p)], 1)
    theirs = LogisticRegression(C=1e8, tol=1e-12, max_iter=10_000).fit(features, y).predict_proba(features)[:, 1]
    ours = beta_scaling(2 * logits + [0.5, 0], y)(2 * logits + [0.5, 0])[:, 1]
    assert ours == pytest.approx(theirs, abs=2e-3)  # Platt's targets hold ours back by 1 / n


@pytest.mark.parametrize("method", [name for name in CALIBRATORS if name != "none"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_calibrator_mends_a_known_fault(method, classes):
    logits, y = drawn(4000, classes)
    bent = 3 * logits
    before = log_loss(np.exp(log_softmax(bent[2000:])), y[2000:])
    right = log_loss(np.exp(log_softmax(logits[2000:])), y[2000:])
    after = log_loss(CALIBRATORS[method](bent[:2000], y[:2000])(bent[2000:]), y[2000:])
    assert before - after > 0.8 * (before - right)


@pytest.mark.parametrize("method", list(CALIBRATORS))
@pytest.mark.parametrize("classes", [2, 4])
def test_ten_rows_a_missing_class_constants_and_a_single_class_stay_safe(method, classes):
    generator = np.random.default_rng(0)
    some = generator.normal(size=(10, classes))
    for logits, y in (
        (some, np.arange(10) % (classes - 1)),  # the last class is missing
        (np.zeros((10, classes)), np.arange(10) % classes),  # constant predictions
        (some, np.zeros(10, int)),  # a single class
        (np.tile(some[:1], (10, 1)), np.arange(10) % classes),  # duplicate rows
        (500 * some, some.argmax(1)),  # all right and very sure
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            p = CALIBRATORS[method](logits, y)(np.concatenate([logits, 5 * some]))
        assert np.isfinite(p).all()
        assert p.sum(1) == pytest.approx(np.ones(20))
        assert method == "none" or p[:, y.max() + 1 :].size == 0 or p[:, : y.max() + 1].max() <= 1


def test_json_round_trip():
    logits, y = drawn(300)
    for method, fit in CALIBRATORS.items():
        calibrator = fit(logits, y)
        again = Calibrator.from_json(calibrator.to_json())
        assert again.method == method
        assert (again(logits) == calibrator(logits)).all()
    for value in (None, {}, {"method": "x", "arrays": {}}, {"method": "platt", "arrays": {"weights": [float("nan")]}}):
        with pytest.raises(WonderlandError) as caught:
            Calibrator.from_json(value)
        assert str(caught.value) == "The calibrator cannot be read: the file is damaged."


def test_the_choice():
    logits, y = drawn(1500)
    chosen = choose_calibrator(3 * logits, y)
    assert chosen.calibrator.method in ("temperature", "vector", "matrix")
    assert set(chosen.losses) == set(CALIBRATORS)
    assert chosen.losses[chosen.calibrator.method] == min(chosen.losses.values())
    curved = np.sign(logits) * np.abs(logits) ** 3
    assert choose_calibrator(curved[:, :2], y % 2).calibrator.method in CALIBRATORS
    assert choose_calibrator(logits[:9], y[:9]).calibrator.method == "temperature"


def test_shifted_classes_need_a_shift():
    logits, y = drawn(3000)
    bent = logits + np.array([2.0, 0.0, -1.0])
    assert choose_calibrator(bent, y, methods=("temperature", "vector")).calibrator.method == "vector"
    right = np.exp(log_softmax(logits))
    for fit in (vector_scaling, matrix_scaling):
        assert np.abs(fit(bent, y)(bent) - right).mean() < 0.03
    assert np.abs(temperature_scaling(bent, y)(bent) - right).mean() > 0.05
    assert np.abs(isotonic_scaling(bent, y)(bent) - right).mean() < 0.06


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: choose_calibrator(np.zeros((20, 2)), np.zeros(20), methods=("plat",)),
            "There is no calibrator 'plat'; there are none, temperature, vector, matrix, platt, beta, isotonic. "
            "Did you mean 'platt'?",
        ),
        (
            lambda: choose_calibrator(np.zeros((20, 2)), np.zeros(20), folds=1),
            "`folds` has to be a whole number of at least 2, not 1.",
        ),
        (
            lambda: vector_scaling(np.zeros((20, 2)), np.zeros(20), ridge=0),
            "The strength of a penalty has to be a positive number, not 0.",
        ),
        (
            lambda: platt_scaling([[np.inf, 0.0]], [0]),
            "`logits` holds inf at row 0: only finite numbers can be used.",
        ),
        (
            lambda: isotonic_regression([1.0, 2.0], [1.0, 2.0], [0.0, 0.0]),
            "`weights` have to be 0 or more, and not all 0.",
        ),
        (
            lambda: platt_scaling([[[0.0]]], [0]),
            "`logits` has shape (1, 1, 1): it needs a row for each example and a column for each class.",
        ),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words
