"""Cumulative distributions against scipy, exponential families against torch and autodiff, and error messages."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import distributions as d

from wonderland import WonderlandError
from wonderland.autodiff import numerical_gradient
from wonderland.probability import DiscreteUniform, cdf, exponential_family, incomplete_beta, quantile


def t(x):
    return torch.tensor(x, dtype=torch.float64)


CASES = {
    "student": (d.StudentT(t(3.5), t(1.0), t(2.0)), stats.t(3.5, 1, 2)),
    "cauchy": (d.StudentT(t(1.0)), stats.t(1)),
    "beta": (d.Beta(t(2.0), t(3.0)), stats.beta(2, 3)),
    "binomial": (d.Binomial(10, t(0.3)), stats.binom(10, 0.3)),
    "bernoulli": (d.Bernoulli(t(0.3)), stats.bernoulli(0.3)),
    "poisson": (d.Poisson(t(3.7)), stats.poisson(3.7)),
    "geometric": (d.Geometric(t(0.3)), stats.geom(0.3, -1)),
    "categorical": (d.Categorical(t([0.2, 0.5, 0.3])), stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3]))),
    "uniform": (DiscreteUniform(6), stats.randint(1, 7)),
    "normal": (d.Normal(t(1.0), t(2.0)), stats.norm(1, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cumulative_distributions_of_scipy(name):
    ours, theirs = CASES[name]
    x = np.array([-3.0, -0.5, 0.0, 0.3, 0.999, 1.0, 2.0, 2.5, 5.0, 9.0, 10.0, 40.0])
    np.testing.assert_allclose(cdf(ours, x), theirs.cdf(x), rtol=1e-10, atol=1e-13)
    assert (cdf(ours, x).diff() >= 0).all()


@given(st.floats(0.1, 200), st.floats(0.1, 200), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_the_incomplete_beta_function(a, b, x):
    assert float(incomplete_beta(a, b, x)) == pytest.approx(stats.beta(a, b).cdf(x), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("name", ["student", "cauchy", "beta", "normal"])
def test_quantiles_undo(name):
    ours, theirs = CASES[name]
    share = np.array([1e-6, 0.025, 0.5, 0.8, 0.975, 1 - 1e-9])
    found = quantile(ours, share)
    np.testing.assert_allclose(found, theirs.ppf(share), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(cdf(ours, found), share, rtol=1e-9)


@pytest.mark.parametrize("name", ["student", "cauchy", "beta", "normal"])
def test_densities_are_the_derivatives_of_cumulative_distributions(name):
    ours, _ = CASES[name]
    x, h = t([0.2, 0.35, 0.6, 0.8]), 1e-4
    density = (cdf(ours, x + h) - cdf(ours, x - h)) / (2 * h)
    torch.testing.assert_close(ours.log_prob(x).exp(), density, rtol=1e-6, atol=1e-8)
    normal = d.Normal(t(1.0), t(2.0))
    torch.testing.assert_close(normal.log_prob(x), -((x - 1) ** 2) / 8 - np.log(2 * np.sqrt(2 * np.pi)))


def test_distributions_of_several_numbers_have_their_means_and_covariances():
    """D2L 2.6, 22.8: from draws, within five standard errors."""
    draws, p = 20_000, t([0.2, 0.5, 0.3])
    counts = d.Multinomial(8, p).sample((draws,))
    assert (counts.sum(1) == 8).all()
    covariance = 8 * (torch.diag(p) - p.outer(p))
    assert ((counts.mean(0) - 8 * p).abs() < 5 * (covariance.diagonal() / draws).sqrt()).all()
    torch.testing.assert_close(counts.T.cov(), covariance, rtol=0.1, atol=0.05)
    exact = t([[2.0, 0.6], [0.6, 1.0]])
    pairs = d.MultivariateNormal(t([1.0, -1.0]), exact).sample((draws,))
    assert ((pairs.mean(0) - t([1.0, -1.0])).abs() < 5 * (exact.diagonal() / draws).sqrt()).all()
    torch.testing.assert_close(pairs.T.cov(), exact, rtol=0.1, atol=0.05)
    flat = d.Uniform(t(-1.0), t(3.0))
    np.testing.assert_allclose(cdf(flat, [-1.0, 0.0, 2.5, 3.0]), stats.uniform(-1, 4).cdf([-1.0, 0.0, 2.5, 3.0]))
    assert float(flat.variance) == pytest.approx(16 / 12)


def test_the_discrete_uniform():
    die, x = DiscreteUniform(6), torch.arange(1, 7)
    assert float(die.log_prob(x).exp().sum()) == pytest.approx(1)
    assert die.log_prob(t([0.0, 1.5, 7.0])).tolist() == [-float("inf")] * 3
    assert float((die.log_prob(x).exp() * x).sum()) == pytest.approx(float(die.mean))
    assert float((die.log_prob(x).exp() * (x - die.mean) ** 2).sum()) == pytest.approx(float(die.variance))
    assert set(die.sample((200,)).tolist()) == set(range(1, 7))
    assert die.enumerate_support().tolist() == x.tolist()


FAMILIES = {
    "bernoulli": (exponential_family.bernoulli, d.Bernoulli, [0.3], [0.0, 1.0]),
    "poisson": (exponential_family.poisson, d.Poisson, [2.5], [0.0, 1.0, 7.0]),
    "gaussian": (exponential_family.gaussian, lambda m, v: d.Normal(m, v.sqrt()), [1.0, 4.0], [-2.0, 0.0, 3.0]),
    "exponential": (exponential_family.exponential, d.Exponential, [2.0], [0.1, 3.0]),
    "binomial": (exponential_family.binomial(9), lambda p: d.Binomial(9, p), [0.3], [0.0, 4.0, 9.0]),
    "categorical": (
        exponential_family.categorical(3),
        lambda *p: d.Categorical(torch.stack(p)),
        [0.2, 0.5, 0.3],
        [0.0, 1.0, 2.0],
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_the_distribution_of_torch(name):
    family, make, parameters, x = FAMILIES[name]
    distribution, eta = make(*t(parameters)), family.natural(t(parameters))
    torch.testing.assert_close(family.log_prob(x, eta), distribution.log_prob(t(x)))


@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives_of_the_log_partition_are_moments(name):
    family, make, parameters, _ = FAMILIES[name]
    eta = family.natural(t(parameters))
    mean, covariance = family.mean(eta), family.covariance(eta)
    torch.testing.assert_close(mean, numerical_gradient(family.log_partition, eta), rtol=1e-6, atol=1e-8)
    assert torch.linalg.eigvalsh(covariance).min() > -1e-12
    drawn = family.statistics(make(*t(parameters)).sample((40_000,)).to(torch.float64))
    error = (covariance.diagonal() / 40_000).sqrt()
    assert ((drawn.mean(0) - mean).abs() < 5 * error + 1e-12).all()
    torch.testing.assert_close(drawn.T.cov().reshape(covariance.shape), covariance, rtol=0.1, atol=0.02)


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "gaussian", "exponential", "binomial", "categorical"])
def test_the_most_likely_parameters_match_the_mean_of_the_statistics(name):
    family, make, parameters, _ = FAMILIES[name]
    x = make(*t(parameters)).sample((300,)).to(torch.float64)
    start = family.natural(t({"gaussian": [0.0, 1.0], "categorical": [1 / 3] * 3}.get(name, [0.5])))
    torch.testing.assert_close(family.mean(family.fit(x, start)), family.statistics(x).mean(0), rtol=1e-8, atol=1e-8)


SENTENCES = [
    (lambda: cdf(d.VonMises(t(0.0), t(1.0)), 0.0), "There is no cumulative distribution for VonMises."),
    (lambda: quantile(d.Poisson(t(1.0)), 0.5), "There are no quantiles for Poisson."),
    (lambda: quantile(d.StudentT(t(1.0)), 1.0), "`probability` has to lie strictly between 0 and 1."),
    (lambda: incomplete_beta(0.0, 1.0, 0.5), "`a` and `b` have to be positive."),
    (lambda: incomplete_beta(1.0, 1.0, 1.5), "`x` has to lie between 0 and 1."),
    (lambda: DiscreteUniform(0), "`n` has to be a whole number of at least 1, not 0."),
    (
        lambda: exponential_family.poisson.fit([0.0, 0.0], [0.0]),
        "The Poisson likelihood has no maximum for these values of `x`: their mean statistics are on the boundary of the possible ones.",
    ),
    (lambda: exponential_family.binomial(0), "`trials` has to be a whole number of at least 1, not 0."),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_error_messages(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
