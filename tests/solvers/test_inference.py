"""Intervals around least squares: scipy's numbers for one feature, and the share of repetitions they cover."""

import re

import numpy as np
import pytest
import torch
from scipy import stats

from wonderland import WonderlandError
from wonderland.solvers import (
    append_one,
    coefficient_intervals,
    least_squares,
    noise_variance,
    prediction_intervals,
)


def line(seed=0, n=20):
    generator = torch.Generator().manual_seed(seed)
    x, noise = torch.randn(2, n, generator=generator, dtype=torch.float64)
    return x.unsqueeze(1) + 3, 2 * x - 1 + 0.5 * noise


def test_the_numbers_of_scipy():
    X, y = line()
    theirs = stats.linregress(X[:, 0].numpy(), y.numpy())
    ours = coefficient_intervals(X, y, confidence=0.9)
    np.testing.assert_allclose(ours.estimate, [theirs.slope, theirs.intercept], rtol=1e-9)
    np.testing.assert_allclose(ours.error, [theirs.stderr, theirs.intercept_stderr], rtol=1e-9)
    t = stats.t(18).ppf(0.95)
    np.testing.assert_allclose(
        ours.high, [theirs.slope + t * theirs.stderr, theirs.intercept + t * theirs.intercept_stderr]
    )


def test_errors_by_the_formula():
    X = torch.randn(25, 4, dtype=torch.float64)
    y = torch.randn(25, dtype=torch.float64)
    D = append_one(X)
    inverse = torch.linalg.inv(D.T @ D)
    s2 = noise_variance(X, y, unbiased=True)
    torch.testing.assert_close(coefficient_intervals(X, y).error, (s2 * inverse.diagonal()).sqrt())
    new = append_one(torch.randn(3, 4, dtype=torch.float64))
    quadratic = ((new @ inverse) * new).sum(1)
    mean = prediction_intervals(X, y, new[:, :-1], of="mean")
    target = prediction_intervals(X, y, new[:, :-1])
    torch.testing.assert_close(mean.error, (s2 * quadratic).sqrt())
    torch.testing.assert_close(target.error, (s2 * (1 + quadratic)).sqrt())
    torch.testing.assert_close(mean.estimate, least_squares(X, y).predict(new[:, :-1]))
    assert (target.high > mean.high).all()


def test_the_variance_of_the_book_is_too_small_by_its_factor():
    X, n = torch.randn(8, 2, dtype=torch.float64), 8
    actual = torch.tensor([noise_variance(X, torch.randn(n, dtype=torch.float64)) for _ in range(400)])
    error = float(actual.std() / 20)
    assert abs(float(actual.mean()) - (n - 3) / n) < 4 * error
    assert float(actual.mean()) + 4 * error < 1
    y = torch.randn(n, dtype=torch.float64)
    assert noise_variance(X, y, unbiased=True) == pytest.approx(noise_variance(X, y) * n / (n - 3))


def test_intervals_cover_as_often_as_they_say():
    X, new = torch.randn(8, 1, dtype=torch.float64), torch.tensor([[1.5]], dtype=torch.float64)
    hits = torch.zeros(3)
    rounds = 120
    for _ in range(rounds):
        y = 2 * X[:, 0] - 1 + torch.randn(8, dtype=torch.float64)
        interval = coefficient_intervals(X, y, confidence=0.8)
        mean = prediction_intervals(X, y, new, confidence=0.8, of="mean")
        target = prediction_intervals(X, y, new, confidence=0.8)
        fresh = 2.0 + torch.randn((), dtype=torch.float64)
        hits += torch.stack([
            (interval.low[0] < 2) & (interval.high[0] > 2),
            (mean.low[0] < 2) & (mean.high[0] > 2),
            (target.low[0] < fresh) & (target.high[0] > fresh),
        ])  # fmt: skip
    assert ((hits / rounds - 0.8).abs() < 4 * (0.8 * 0.2 / rounds) ** 0.5).all()


X0, Y0 = [[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0]
SENTENCES = [
    (
        lambda: coefficient_intervals([[0.0], [1.0]], [0.0, 1.0]),
        "`X` has 2 rows for 2 coefficients: the fit is exact, and there are no residuals to estimate the noise from.",
    ),
    (
        lambda: coefficient_intervals(X0, Y0, confidence=95.0),
        "`confidence` has to lie strictly between 0 and 1, not at 95.0.",
    ),
    (lambda: prediction_intervals(X0, Y0, X0, of="line"), "`of` has to be one of 'target', 'mean', not 'line'."),
    (lambda: prediction_intervals(X0, Y0, [[1.0, 2.0]]), "`x_new` has 2 columns, but the model was fitted on 1."),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_what_is_said(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
