"""Likelihood, priors, Bayes, Monte Carlo, estimators, intervals, naive Bayes: each statement on fresh samples."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from torch import distributions as d

from wonderland import WonderlandError
from wonderland.probability import (
    BetaBinomial,
    GaussianMean,
    GaussianWeights,
    average,
    bernoulli_fit,
    bernoulli_naive_bayes,
    chebyshev_bound,
    expectation,
    gaussian_fit,
    gaussian_naive_bayes,
    gaussian_prior,
    generalisation_gap,
    laplace_prior,
    maximise,
    mean_interval,
    proportion_interval,
    quality,
    sampled_kl,
    standardised_mean,
)

few = settings(max_examples=30, deadline=None)


def test_gradient_likelihood_meets_the_closed_forms():
    x = 2 + 3 * torch.randn(50, dtype=torch.float64)
    found = maximise(lambda p: d.Normal(p[0], p[1].exp()).log_prob(x), [0.0, 0.0])
    assert (float(found[0]), float((2 * found[1]).exp())) == pytest.approx(gaussian_fit(x), rel=1e-5)
    flips = (torch.rand(40) < 0.3).double()
    logit = maximise(lambda p: d.Bernoulli(logits=p[0]).log_prob(flips), [0.0])
    assert float(logit.sigmoid()) == pytest.approx(bernoulli_fit(flips), rel=1e-5)


def test_priors_are_regularisers():
    X, noise = torch.randn(20, 3, dtype=torch.float64), torch.randn(20, dtype=torch.float64)
    y, sigma, s = X.sum(1) + noise, 0.7, 0.4
    found = maximise(lambda w: d.Normal(X @ w, sigma).log_prob(y), [0.0] * 3, log_prior=gaussian_prior(s))
    ridge = Ridge(alpha=sigma**2 / s**2, fit_intercept=False).fit(X.numpy(), y.numpy())
    np.testing.assert_allclose(found, ridge.coef_, atol=1e-5)
    belief = GaussianWeights.prior(3, s**2, sigma**2).update(X, y)
    np.testing.assert_allclose(belief.mean, ridge.coef_, atol=1e-9)
    theta = torch.randn(4, dtype=torch.float64)
    torch.testing.assert_close(gaussian_prior(2.0)(theta), d.Normal(0.0, 2.0).log_prob(theta).sum())
    torch.testing.assert_close(laplace_prior(2.0)(theta), d.Laplace(0.0, 2.0).log_prob(theta).sum())


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
@few
def test_two_updates_of_a_beta_are_one(a, b, c, e):
    twice = BetaBinomial(2.0, 3.0).update(a, a + b).update(c, c + e)
    assert twice == BetaBinomial(2.0, 3.0).update(a + c, a + b + c + e)
    assert twice.predictive == pytest.approx(float(twice.posterior.mean))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_posterior_of_a_beta_is_prior_times_likelihood(dtype):
    """By quadrature, with counts that come as numbers of a tensor."""
    flips = torch.tensor([1, 0, 1, 1, 0, 1, 1], dtype=dtype)
    belief = BetaBinomial(2.0, 3.0).update(int(flips.sum()), len(flips))
    assert belief == BetaBinomial(7.0, 5.0)
    grid = torch.linspace(0.0005, 0.9995, 1000, dtype=dtype)
    density = d.Beta(torch.tensor(2.0, dtype=dtype), torch.tensor(3.0, dtype=dtype)).log_prob(grid).exp()
    density = density * grid**5 * (1 - grid) ** 2
    density = density / density.sum()
    torch.testing.assert_close(
        belief.posterior.log_prob(grid.double()).exp() / 1000, density.double(), atol=1e-6, rtol=1e-3
    )
    assert belief.predictive == pytest.approx(float((density * grid).sum()), rel=1e-4)


@given(st.lists(st.floats(-9, 9), min_size=2, max_size=8), st.integers(1, 7))
@few
def test_two_updates_of_a_gaussian_are_one(x, cut):
    cut = min(cut, len(x) - 1)
    prior = GaussianMean(1.0, 2.0, 0.5)
    one, two = prior.update(x), prior.update(x[:cut]).update(x[cut:])
    assert (two.mean, two.variance) == pytest.approx((one.mean, one.variance), abs=1e-12)
    assert one.variance < prior.variance
    # By quadrature: prior times likelihood, normalised.
    grid = torch.linspace(-30, 30, 60_001, dtype=torch.float64)
    weight = prior.posterior.log_prob(grid)
    for value in x:
        weight = weight + d.Normal(grid, math.sqrt(0.5)).log_prob(torch.tensor(value, dtype=torch.float64))
    assert float((weight.softmax(0) * grid).sum()) == pytest.approx(one.mean, abs=1e-6)


def test_updates_of_weights_commute():
    X, y = torch.randn(9, 2, dtype=torch.float64), torch.randn(9, dtype=torch.float64)
    prior = GaussianWeights.prior(2, 1.0, 0.5)
    one, two = prior.update(X, y), prior.update(X[4:], y[4:]).update(X[:4], y[:4])
    torch.testing.assert_close(one.mean, two.mean)
    torch.testing.assert_close(one.posterior.covariance_matrix, two.posterior.covariance_matrix)


def test_error_bars_cover_and_shrink_with_the_root():
    hits = 0
    for _ in range(400):
        low, high = expectation(torch.exp, d.Normal(0.0, 0.5), 200).interval(0.9)
        hits += low < math.exp(0.125) < high
    assert abs(hits / 400 - 0.9) < 0.06
    ratio = (
        expectation(torch.exp, d.Normal(0.0, 0.5), 1000).error
        / expectation(torch.exp, d.Normal(0.0, 0.5), 16_000).error
    )
    assert ratio == pytest.approx(4, rel=0.25)
    p, q = d.Normal(0.0, 1.0), d.Normal(0.5, 2.0)
    found = sampled_kl(p, q)
    assert abs(found.value - float(d.kl_divergence(p, q))) < 4 * found.error
    assert str(average([1.0, 3.0])) == "2 ± 1 (2 draws)"


def test_the_gap_of_a_fixed_function_is_nothing_and_that_of_a_memory_is_not():
    """Alice 3.2.1: rows that did not choose the function give its risk without bias; rows that were fitted do not."""
    hits, draw = 0, torch.Generator().manual_seed(0)
    for _ in range(300):
        losses = torch.randn(60, dtype=torch.float64, generator=draw).square()  # of a function chosen beforehand
        gap = generalisation_gap(torch.ones(5), losses)
        low, high = gap.interval(0.9)
        hits += low < 0 < high
    assert abs(hits / 300 - 0.9) < 0.07

    def powers(x, degree):
        return x.unsqueeze(1) ** torch.arange(degree + 1, dtype=torch.float64)

    x = torch.rand(12 + 500, dtype=torch.float64, generator=draw)
    y = (6 * x).sin() + 0.3 * torch.randn(len(x), dtype=torch.float64, generator=draw)
    gaps = []
    for degree in (1, 3, 9):
        weights = torch.linalg.lstsq(powers(x[:12], degree), y[:12].unsqueeze(1)).solution.squeeze(1)
        losses = (powers(x, degree) @ weights - y).square()
        gap = generalisation_gap(losses[:12], losses[12:])
        assert gap.value == pytest.approx(float(losses[12:].mean() - losses[:12].mean()))
        assert gap.n == 500
        gaps.append(gap)
    assert gaps[2].value > gaps[1].value
    assert gaps[2].interval(0.99)[0] > 0  # ten weights for twelve rows


@pytest.mark.parametrize("correction", [0, 1])
def test_the_bias_of_the_variance(correction):
    found = quality(lambda x: x.var(1, correction=correction), lambda r: 2 * torch.randn(r, 4), truth=4.0)
    assert abs(found.bias.value - (0.0 if correction else -1.0)) < 4 * found.bias.error
    assert found.mse.value == pytest.approx(found.bias.value**2 + found.variance)


def test_the_central_limit_and_chebyshev():
    z = standardised_mean(torch.rand(4000, 30, dtype=torch.float64) ** 3, 1 / 4, 1 / 7 - 1 / 16)
    for point in (-1.0, 0.0, 1.0):
        assert float((z < point).double().mean()) == pytest.approx(
            float(d.Normal(0.0, 1.0).cdf(torch.tensor(point))), abs=0.04
        )
    for deviations in (1.5, 2.0, 3.0):
        for x in (torch.rand(999), torch.randn(999), torch.rand(999).log()):
            away = ((x - x.mean()).abs() >= deviations * x.std(correction=0)).double().mean()
            assert float(away) <= chebyshev_bound(deviations)


def test_intervals_of_a_mean_cover_as_stated():
    draws = torch.randn(100, 5, dtype=torch.float64)
    for known in (None, 1.0):
        found = [mean_interval(x, confidence=0.8, deviation=known) for x in draws]
        assert abs(sum(low < 0 < high for low, high in found) / 100 - 0.8) < 0.16


def test_exact_intervals_of_a_proportion_never_cover_too_seldom():
    n, p = 12, torch.linspace(0.05, 0.95, 19, dtype=torch.float64)
    chances = d.Binomial(n, p).log_prob(torch.arange(n + 1.0, dtype=torch.float64).unsqueeze(1)).exp()
    for method, least in (("exact", 0.9), ("wilson", 0.8)):
        ends = torch.tensor([proportion_interval(k, n, confidence=0.9, method=method) for k in range(n + 1)])
        inside = (ends[:, :1] <= p) & (p <= ends[:, 1:])
        assert float((inside * chances).sum(0).min()) >= least
    assert proportion_interval(0, 5, method="exact")[0] == 0.0
    assert proportion_interval(5, 5, method="exact")[1] == 1.0


def test_naive_bayes_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    np.testing.assert_allclose(
        gaussian_naive_bayes(X, y).probabilities(X), GaussianNB().fit(X, y).predict_proba(X), atol=1e-6
    )
    B = (X.mean(0) < X).astype(float)
    for alpha in (0.5, 1.0):
        ours, theirs = bernoulli_naive_bayes(B, y, smoothing=alpha), BernoulliNB(alpha=alpha).fit(B, y)
        np.testing.assert_allclose(ours.probabilities(B), theirs.predict_proba(B), atol=1e-9)
        assert (ours.predict(B).numpy() == theirs.predict(B)).all()


X0 = [[0.0], [1.0]]
SENTENCES = [
    (lambda: bernoulli_fit([0, 2]), "`x` has to hold only 0 and 1."),
    (lambda: gaussian_fit([1.0], unbiased=True), "`x` holds one value: the unbiased variance needs two."),
    (
        lambda: maximise(lambda p: p.log(), [-1.0]),
        "The likelihood is not finite at `start`: choose a point where every sample is possible.",
    ),
    (lambda: gaussian_prior(0.0), "`scale` has to be a positive number, not 0.0."),
    (
        lambda: BetaBinomial().update(3, 2),
        "`successes` has to lie between 0 and `trials`; they are 3 and 2.",
    ),
    (lambda: BetaBinomial(a=-1.0), "`a` has to be a positive number, not -1.0."),
    (
        lambda: GaussianMean(0.0, 1.0, 1.0).update([math.nan]),
        "`x` holds nan at index (0,): only finite numbers are allowed here.",
    ),
    (
        lambda: GaussianWeights.prior(2, 1.0, 1.0).update(X0, [1.0, 2.0]),
        "`X` has shape (2, 1) for 2 targets and 2 weights.",
    ),
    (lambda: average([1.0]), "`values` holds one draw: an error bar needs two."),
    (lambda: generalisation_gap([1.0], [1.0]), "`values` holds one draw: an error bar needs two."),
    (
        lambda: expectation(lambda x: x.sum(), d.Normal(0.0, 1.0), 5),
        "`f` returned shape () for 5 draws: it has to return one number for each.",
    ),
    (
        lambda: quality(lambda x: x, lambda r: torch.zeros(r, 2), 0.0, 3),
        "`estimator` returned shape (3, 2) for 3 samples: it has to return one number each.",
    ),
    (lambda: mean_interval([1.0]), "`x` holds one value: pass its known `deviation`, or more values."),
    (
        lambda: mean_interval([1.0, 2.0], confidence=1.0),
        "`confidence` has to lie strictly between 0 and 1, not at 1.0.",
    ),
    (
        lambda: proportion_interval(1, 2, method="wald"),
        "`method` has to be one of 'wilson', 'exact', not 'wald'.",
    ),
    (lambda: bernoulli_naive_bayes([[0.5]], [0]), "`X` holds 0.5 at index (0, 0): features have to be 0 or 1 here."),
    (lambda: bernoulli_naive_bayes(X0, [0, 2]), "`y` has no row of class 1: every class needs at least one."),
    (lambda: gaussian_naive_bayes(X0, [0, -1]), "`y` holds -1 at index 1: labels are whole numbers from 0."),
    (lambda: gaussian_naive_bayes(X0, [0]), "`y` has 1 entries where `X` has 2 rows."),
    (
        lambda: gaussian_naive_bayes(X0, [0, 1], floor=0.0),
        "`X` has a feature that is constant within a class: pass `floor` above 0, or drop it.",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_error_messages(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
