"""Logistic and softmax regression: the answers of scikit-learn by both solvers, and the identities of the book."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from wonderland import WonderlandError
from wonderland.solvers import logistic_regression, softmax_regression

SOLVERS = ["newton", "gradient"]


def data(seed=0, n=80, c=3, classes=2):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, c, generator=generator, dtype=torch.float64)
    scores = X @ torch.randn(c, classes, generator=generator, dtype=torch.float64)
    noise = torch.rand(n, classes, generator=generator, dtype=torch.float64)
    return X, (scores - (-noise.log()).log()).argmax(1)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("ridge", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("bias", [True, False])
def test_logistic_regression_of_scikit_learn(solver, ridge, bias):
    X, y = data()
    ours = logistic_regression(X, y, ridge=ridge, solver=solver, bias=bias)
    theirs = LogisticRegression(C=1 / ridge, tol=1e-10, fit_intercept=bias, solver="newton-cholesky", max_iter=1000)
    theirs.fit(X.numpy(), y.numpy())
    np.testing.assert_allclose(ours.weights, theirs.coef_[0], atol=1e-6)
    assert ours.bias == pytest.approx(float(theirs.intercept_[0]) if bias else 0.0, abs=1e-6)
    np.testing.assert_allclose(ours.probabilities(X), theirs.predict_proba(X.numpy())[:, 1], atol=1e-6)
    assert (ours.predict(X).numpy() == theirs.predict(X.numpy())).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("ridge", [0.5, 5.0])
def test_softmax_regression_of_scikit_learn(solver, ridge):
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    ours = softmax_regression(X, y, ridge=ridge, solver=solver)
    theirs = LogisticRegression(C=1 / ridge, tol=1e-10, solver="newton-cg", max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.weights, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.probabilities(X), theirs.predict_proba(X), atol=1e-6)
    assert ours.weights.sum(0).abs().max() < 1e-9


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_without_a_ridge_both_solvers_meet_where_the_gradient_vanishes(seed):
    X, y = data(seed, n=200, c=2)
    try:
        fit = logistic_regression(X, y)
    except WonderlandError:
        return
    residual = fit.probabilities(X) - y
    assert (X.T @ residual).abs().max() < 1e-6
    assert residual.sum().abs() < 1e-6
    torch.testing.assert_close(fit.weights, logistic_regression(X, y, solver="gradient").weights, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_two_softmax_outputs_are_one_sigmoid(ridge, seed):
    X, y = data(seed)
    one, two = logistic_regression(X, y, ridge=ridge), softmax_regression(X, y, ridge=2 * ridge)
    torch.testing.assert_close(two.weights[1] - two.weights[0], one.weights, rtol=0, atol=1e-7)
    torch.testing.assert_close(two.probabilities(X)[:, 1], one.probabilities(X), rtol=0, atol=1e-8)
    assert two.loss == pytest.approx(one.loss)


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_feature_of_each_class_is_matched(seed):
    X, y = data(seed, n=150, classes=3)
    fit = softmax_regression(X, y)
    residual = fit.probabilities(X) - torch.nn.functional.one_hot(y, 3)
    assert (residual.T @ X).abs().max() < 1e-6
    assert residual.sum(0).abs().max() < 1e-6
    assert fit.loss == pytest.approx(float(torch.nn.functional.cross_entropy(fit.logits(X), y)))


def test_the_logit_is_the_log_odds():
    X, y = data()
    fit = logistic_regression(X, y)
    p = fit.probabilities(X)
    torch.testing.assert_close(fit.logits(X), (p / (1 - p)).log())


def test_half_is_class_0():
    fit = logistic_regression([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1])
    assert fit.predict([[0.5]]).tolist() == [0]


def test_no_line_separates_xor():
    fit = logistic_regression([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0])
    assert fit.weights.abs().max() < 1e-9
    assert fit.loss == pytest.approx(float(np.log(2)))


X0, Y0 = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
APART = "The classes in `y` are linearly separable in `X`, so the weights diverge: pass ridge > 0."
NAN = float("nan")
SENTENCES = [
    (lambda: logistic_regression(X0, [0, 1, 2, 0]), "`y` holds 2 at index 2: labels are whole numbers from 0 to 1."),
    (lambda: logistic_regression(X0, [0, 1, -1, 0]), "`y` holds -1 at index 2: labels are whole numbers from 0 to 1."),
    (
        lambda: logistic_regression(X0, [0, 0.5, 1, 0]),
        "`y` holds 0.5 at index 1: labels are whole numbers from 0 to 1.",
    ),
    (
        lambda: logistic_regression(X0, [0, NAN, 1, 0]),
        "`y` holds nan at index (1,): only finite numbers are allowed here.",
    ),
    (
        lambda: logistic_regression(X0, [1, 1, 1, 1]),
        "`y` holds only label 1: two classes are needed, or pass ridge > 0.",
    ),
    (
        lambda: logistic_regression(X0, [1, 1, 1, 1], ridge=1.0),
        "`y` holds only label 1: the bias, which is not penalised, would diverge.",
    ),
    (lambda: logistic_regression(X0, [0, 0, 1, 1]), APART),
    (lambda: logistic_regression([[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]), APART),
    (lambda: softmax_regression(X0, [0, 0, 1, 1]), APART),
    (lambda: softmax_regression([[0.0], [1.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1, 2]), APART),
    (
        lambda: logistic_regression(X0, [0, 0, 1, 1], solver="gradient", steps=50),
        "Gradient descent did not converge in 50 `steps`: scale the columns of `X`, pass ridge > 0, or use "
        "solver='newton'.",
    ),
    (
        lambda: logistic_regression(X0, Y0, solver="adam"),
        "`solver` has to be one of 'newton', 'gradient', not 'adam'.",
    ),
    (
        lambda: logistic_regression([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]], Y0),
        "Columns 1 of `X` are combinations of the columns before them and the bias: drop them, or pass ridge > 0.",
    ),
    (lambda: softmax_regression(X0, [0, 2, 0, 2]), "`y` has no row of class 1: every class needs at least one."),
    (
        lambda: softmax_regression(X0, [0, 3, 1, 2], classes=3),
        "`y` holds 3 at index 1: labels are whole numbers from 0 to 2.",
    ),
    (lambda: softmax_regression(X0, [0, -3, 1, 2]), "`y` holds -3 at index 1: labels are whole numbers from 0."),
    (lambda: softmax_regression(X0, Y0, ridge=-1.0), "`ridge` has to be 0 or more, not -1."),
    (lambda: softmax_regression(X0, Y0, classes=1), "`classes` has to be a whole number of at least 2, not 1."),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_what_is_said(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
