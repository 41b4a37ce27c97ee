"""Least squares and ridge: the answers of scikit-learn, the algebra of the book, and what is said of bad data."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, Ridge

from wonderland import WonderlandError
from wonderland.solvers import (
    append_one,
    descend,
    dual_weights,
    hat_matrix,
    influential_rows,
    least_squares,
    ridge_regression,
)
from wonderland.solvers.least_squares import gradient

seeds = st.integers(0, 10**6)
few = settings(max_examples=25, deadline=None)


def data(seed=0, n=30, c=4, noise=0.1):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, c, generator=generator, dtype=torch.float64)
    w = torch.randn(c, generator=generator, dtype=torch.float64)
    return X, X @ w + 2 + noise * torch.randn(n, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("bias", [True, False])
def test_the_answers_of_scikit_learn(bias):
    X, y = load_diabetes(return_X_y=True)
    X = X * np.logspace(-1, 1, X.shape[1]) + 0.5
    ours, theirs = least_squares(X, y, bias=bias), LinearRegression(fit_intercept=bias).fit(X, y)
    np.testing.assert_allclose(ours.weights, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
    assert ours.bias == pytest.approx(theirs.intercept_, rel=1e-6)
    X, y = load_diabetes(return_X_y=True)
    for alpha in (1e-3, 1.0, 100.0):
        ours, theirs = ridge_regression(X, y, alpha, bias=bias), Ridge(alpha, fit_intercept=bias).fit(X, y)
        np.testing.assert_allclose(ours.weights, theirs.coef_, rtol=1e-6)
        assert ours.bias == pytest.approx(theirs.intercept_, rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(descend(X, y, ridge=alpha, bias=bias).fit.weights, theirs.coef_, rtol=1e-6)


@given(seeds, st.integers(1, 6))
@few
def test_residuals_are_orthogonal_to_every_column(seed, c):
    X, y = data(seed, c=c)
    residual = y - least_squares(X, y).predict(X)
    assert (append_one(X).T @ residual).abs().max() < 1e-9
    w = least_squares(X, y, bias=False).weights
    assert gradient(X, y, w).abs().max() < 1e-9
    torch.testing.assert_close(w, torch.linalg.inv(X.T @ X) @ X.T @ y)


@given(seeds, st.floats(1e-3, 1e3))
@few
def test_ridge_is_its_closed_form_and_its_minimum(seed, ridge):
    X, y = data(seed)
    w = ridge_regression(X, y, ridge, bias=False).weights
    torch.testing.assert_close(w, torch.linalg.solve(X.T @ X + ridge * torch.eye(4, dtype=X.dtype), X.T @ y))
    assert gradient(X, y, w, ridge).abs().max() < 1e-8 * (1 + ridge)
    n = len(X)
    # What the book prints minimises with n lambda / 4 in the place of lambda.
    theta = w.clone().requires_grad_()
    printed = 2 / n * (y - X @ theta).square().sum() + (4 * ridge / n) / 2 * theta.square().sum()
    assert torch.autograd.grad(printed, theta)[0].abs().max() < 1e-8 * (1 + ridge)


@given(seeds)
@few
def test_more_ridge_means_smaller_weights_and_none_means_least_squares(seed):
    X, y = data(seed)
    norms = [float(ridge_regression(X, y, r).weights.norm()) for r in (1e-9, 0.1, 1.0, 10.0, 100.0)]
    assert norms == sorted(norms, reverse=True)
    torch.testing.assert_close(ridge_regression(X, y, 1e-10).weights, least_squares(X, y).weights)


def test_ridge_takes_dependent_columns_and_few_rows():
    X, y = data(n=3, c=6)
    both = torch.cat([X, X], 1)
    fit = ridge_regression(both, y, 0.1)
    torch.testing.assert_close(fit.weights[:6], fit.weights[6:])


@given(seeds, st.floats(-3, 3), st.floats(0.1, 5))
@few
def test_a_shift_of_the_targets_moves_the_bias_and_a_scale_everything(seed, shift, scale):
    X, y = data(seed)
    fit, moved = least_squares(X, y), least_squares(X, scale * y + shift)
    torch.testing.assert_close(moved.weights, scale * fit.weights)
    assert moved.bias == pytest.approx(scale * fit.bias + shift)


@given(seeds)
@few
def test_rows_are_treated_alike(seed):
    X, y = data(seed)
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(seed))
    fit, mixed = least_squares(X, y), least_squares(X[order], y[order])
    torch.testing.assert_close(fit.weights, mixed.weights)
    torch.testing.assert_close(fit.predict(X[order]), fit.predict(X)[order])


@given(seeds)
@few
def test_descent_goes_down_at_every_step_to_the_closed_form(seed):
    X, y = data(seed, n=12, c=3)
    actual = descend(X, y)
    assert actual.converged
    assert (actual.losses.diff() <= 1e-15).all()
    torch.testing.assert_close(actual.fit.weights, least_squares(X, y).weights, rtol=0, atol=1e-9)


def test_descent_settles_only_below_its_bound():
    X, y = data()
    centred = X - X.mean(0)
    bound = 2 / float(torch.linalg.eigvalsh(centred.T @ centred)[-1])
    assert descend(X, y, rate=0.99 * bound).converged
    with pytest.raises(WonderlandError, match=r"^`rate` .* is too large and the loss grows: keep it below 0\.\d+\.$"):
        descend(X, y, rate=1.2 * bound)
    assert not descend(X, y, steps=1).converged


def test_descent_forms_no_square_matrix():
    X, y = torch.randn(3, 20_000, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    assert descend(X, y, ridge=1.0, steps=5).fit.weights.shape == (20_000,)


@given(seeds, st.integers(1, 5))
@few
def test_the_hat_matrix_is_a_projection(seed, c):
    X, y = data(seed, n=15, c=c)
    for bias in (True, False):
        M = hat_matrix(X, bias=bias)
        torch.testing.assert_close(M @ M, M)
        torch.testing.assert_close(M.T, M)
        assert float(M.trace()) == pytest.approx(c + bias)
        torch.testing.assert_close(M @ y, least_squares(X, y, bias=bias).predict(X))
        assert (M.diagonal() > -1e-12).all()
        assert (M.diagonal() < 1 + 1e-12).all()
        assert float(hat_matrix(X, bias=bias, ridge=5.0).trace()) < c + bias


@given(seeds, st.floats(0.01, 10))
@few
def test_dual_weights_give_the_prediction_and_its_derivative(seed, ridge):
    X, y = data(seed)
    new = data(seed + 1, n=3)[0]
    for bias in (True, False):
        torch.testing.assert_close(dual_weights(X, new, bias=bias) @ y, least_squares(X, y, bias=bias).predict(new))
        D = dual_weights(X, new, ridge=ridge, bias=bias)
        torch.testing.assert_close(D @ y, ridge_regression(X, y, ridge, bias=bias).predict(new))
        bumped = y.clone()
        bumped[7] += 1
        moved = ridge_regression(X, bumped, ridge, bias=bias).predict(new)
        torch.testing.assert_close(moved - D @ y, D[:, 7], rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(dual_weights(X, new).sum(1), torch.ones(3, dtype=torch.float64))
    # The kernel form: the same numbers from an (n, n) system.
    kernel = torch.linalg.solve(X @ X.T + ridge * torch.eye(len(X), dtype=X.dtype), X @ new.T).T
    torch.testing.assert_close(dual_weights(X, new, ridge=ridge, bias=False), kernel)


def test_drivers_are_the_largest_weights_first():
    X, _ = data()
    actual, D = influential_rows(X, X[:2], top=4), dual_weights(X, X[:2])
    assert actual.rows.shape == (2, 4)
    torch.testing.assert_close(actual.weights, D.gather(1, actual.rows))
    assert (actual.weights.abs().diff(dim=1) <= 0).all()
    assert (actual.weights.abs()[:, -1] >= D.abs().sort(dim=1).values[:, -5]).all()
    assert influential_rows(X, X[:1], top=99).rows.shape == (1, 30)


X0, Y0 = [[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0]
NAN = float("nan")
SENTENCES = [
    (lambda: least_squares(X0, [0.0, NAN, 1.0]), "`y` holds nan at index (1,): only finite numbers are allowed here."),
    (
        lambda: least_squares([[0.0], [float("inf")], [1.0]], Y0),
        "`X` holds inf at index (1, 0): only finite numbers are allowed here.",
    ),
    (lambda: least_squares(X0, [0.0]), "`y` has 1 entries, but `X` has 3 rows."),
    (lambda: least_squares([0.0, 1.0], Y0), "`X` has shape (2,) and has to be a matrix."),
    (lambda: least_squares(X0, X0), "`y` has shape (3, 1) and has to be a vector."),
    (
        lambda: least_squares([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]], Y0),
        "Columns 1 of `X` are combinations of the columns before them and the bias: drop them, or pass ridge > 0.",
    ),
    (
        lambda: least_squares([[1.0, 7.0], [2.0, 7.0], [0.0, 7.0]], Y0),
        "Columns 1 of `X` are combinations of the columns before them and the bias: drop them, or pass ridge > 0.",
    ),
    (
        lambda: least_squares([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]], Y0, bias=False),
        "Columns 1 of `X` are combinations of the columns before them: drop them, or pass ridge > 0.",
    ),
    (
        lambda: least_squares([[1.0, 2.0]], [1.0]),
        "`X` has 1 rows for 3 unknowns: many solutions fit exactly. Pass ridge > 0, or more rows.",
    ),
    (lambda: ridge_regression(X0, Y0, -1.0), "`ridge` has to be 0 or more, not -1."),
    (lambda: ridge_regression(X0, Y0, NAN), "`ridge` holds nan at index (): only finite numbers are allowed here."),
    (lambda: ridge_regression(X0, Y0, 0.0), "`ridge` has to be above 0: for 0 use least_squares."),
    (
        lambda: least_squares(X0, Y0).predict([[1.0, 2.0]]),
        "`X` has 2 columns, but the model was fitted on 1.",
    ),
    (lambda: influential_rows(X0, X0, top=0), "`top` has to be a whole number of at least 1, not 0."),
    (lambda: dual_weights(X0, [[1.0, 2.0]]), "`x_new` has 2 columns, but the model was fitted on 1."),
    (lambda: descend(X0, Y0, rate=0.0), "`rate` has to be a positive number, not 0.0."),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_what_is_said(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
