"""What the books state about chances, likelihood and posteriors, as properties that can fail."""

import math

import pytest
import torch
from torch.distributions import Normal

from wonderland import probability, solvers
from wonderland.core import WonderlandError
from wonderland.tasks import losses


def test_axioms_and_independence():
    table = torch.rand(3, 4, dtype=torch.float64)
    joint = probability.JointTable.from_counts(table)
    whole = joint.probs
    assert (whole >= 0).all()
    assert whole.sum().item() == pytest.approx(1)
    # disjoint events add up
    assert whole[0].sum() + whole[1].sum() == pytest.approx(whole[:2].sum().item())
    p, q = torch.tensor([0.2, 0.8], dtype=torch.float64), torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    apart = p[:, None] * q[None, :]
    assert probability.mutual_information(apart).item() == pytest.approx(0, abs=1e-12)
    assert probability.JointTable(apart).independent()
    assert probability.mutual_information(whole).item() > 0
    assert not joint.independent()


def test_expectation_is_linear_and_variance_is_not():
    x = torch.randn(100_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = 0.5 * x + torch.randn(100_000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert (3 * x - 2 * y + 1).mean().item() == pytest.approx((3 * x.mean() - 2 * y.mean() + 1).item(), abs=1e-9)
    both = torch.cov(torch.stack([x, y]))
    assert (x + y).var().item() == pytest.approx((both.sum()).item(), rel=1e-9)
    assert (3 * x + 7).var().item() == pytest.approx(9 * x.var().item())
    assert x.var(correction=0).item() == pytest.approx(((x**2).mean() - x.mean() ** 2).item())


def test_expectations_from_draws_are_linear_and_find_moments():
    """D2L 2.6: E[aX + b] = a E[X] + b, Var[X] = E[X²] - E[X]²; each within four standard errors."""
    distribution = Normal(1.5, 2.0)

    def estimate(f):
        torch.manual_seed(0)  # the same draws for every function
        return probability.expectation(f, distribution, 20_000)

    mean, square = estimate(lambda x: x), estimate(lambda x: x**2)
    assert isinstance(mean, probability.Estimate)
    assert mean.n == 20_000
    assert abs(mean.value - distribution.mean.item()) < 4 * mean.error
    assert mean.error == pytest.approx(2.0 / math.sqrt(20_000), rel=0.05)
    assert estimate(lambda x: 3 * x - 1).value == pytest.approx(3 * mean.value - 1, rel=1e-5)
    assert square.value - mean.value**2 == pytest.approx(distribution.variance.item(), rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_covariances_have_no_negative_eigenvalue(seed):
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randn(6, 20, dtype=torch.float64, generator=draw)
    rows[3] = 2 * rows[0] - rows[1]  # one that depends on others has variance in no new direction
    values = torch.linalg.eigvalsh(torch.cov(rows))
    assert values.min() > -1e-12
    assert values.min() < 1e-12


def test_least_squares_is_gaussian_likelihood():
    """D2L 3.1: with one variance for all, the most likely weights are those of least squares."""
    X, y = solvers.synthetic([1.5, -2.0], 0.7, rows=50, noise=0.5)
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    ones = torch.cat([X, torch.ones(50, 1, dtype=torch.float64)], 1)
    optimizer = torch.optim.LBFGS([w], max_iter=100, tolerance_grad=1e-12, tolerance_change=1e-14)

    def closure():
        optimizer.zero_grad()
        loss = losses.gaussian_nll(ones @ w, y, log_variance=torch.zeros(50, dtype=torch.float64))
        loss.backward()
        return loss

    optimizer.step(closure)
    fit = solvers.least_squares(X, y)
    torch.testing.assert_close(w.detach(), torch.cat([fit.weights, torch.tensor([fit.bias])]), atol=1e-6, rtol=0)


def test_draws_of_a_posterior_average_to_its_prediction():
    """Alice 3.3: the mean of p(y | f_i) over posterior draws is the predictive; the printed form is not."""
    X, y = solvers.synthetic([1.0, -1.0], rows=8, noise=0.5)
    belief = probability.GaussianWeights.prior(2, variance=1.0, noise=0.25).update(X, y)
    point, target = torch.tensor([[1.0, 2.0]], dtype=torch.float64), torch.tensor(-0.5, dtype=torch.float64)
    exact = belief.predictive(point).log_prob(target)[0]
    torch.manual_seed(0)
    drawn = belief.posterior.sample((20_000,))
    each = Normal(drawn @ point[0], 0.5).log_prob(target).clamp(max=0)
    # A density may exceed 1; this one does not.
    assert Normal(0.0, 0.5).log_prob(torch.tensor(0.0)) < 0
    found = probability.predictive_average(each)
    assert found.exp().item() == pytest.approx(exact.exp().item(), rel=0.03)
    printed = (each.exp() * belief.posterior.log_prob(drawn).exp()).mean()
    assert abs(printed - exact.exp()) > 0.2 * exact.exp()
    # The mean of logits is another answer.
    assert probability.predictive_average(torch.tensor([[0.0], [-10.0]])).item() != pytest.approx(-5)


def test_two_beliefs_are_one_and_the_prediction_is_wider_than_the_noise():
    X, y = solvers.synthetic([1.0], rows=6)
    once = probability.GaussianWeights.prior(1, variance=2.0, noise=0.1).update(X, y)
    twice = probability.GaussianWeights.prior(1, variance=2.0, noise=0.1).update(X[:2], y[:2]).update(X[2:], y[2:])
    torch.testing.assert_close(once.predictive(X).mean, twice.predictive(X).mean)
    assert (once.predictive(X).variance > 0.1).all()


def test_synthetic_rows_are_found_again():
    X, y = solvers.synthetic([2.0, -3.4], 4.2)
    fit = solvers.least_squares(X, y)
    torch.testing.assert_close(fit.weights, torch.tensor([2.0, -3.4], dtype=torch.float64), atol=2e-3, rtol=0)
    assert fit.bias == pytest.approx(4.2, abs=2e-3)
    assert (fit.predict(X) - y).std().item() == pytest.approx(0.01, rel=0.1)
    assert torch.equal(X, solvers.synthetic([2.0, -3.4], 4.2)[0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: solvers.synthetic([1.0], noise=-1.0), "`noise` has to be 0 or more, not -1."),
        (lambda: probability.predictive_average(torch.ones(2, 2)), "`log_probabilities` holds 1: a logarithm of a probability is at most 0."),
        (lambda: probability.predictive_average([0.5]), "`log_probabilities` has to be a tensor with the models first, one at least."),
        (lambda: probability.GaussianWeights.prior(2, 1.0, 1.0).predictive([[1.0]]), "`X` has 1 columns for 2 weights."),
    ],
)  # fmt: skip
def test_wrong_use_meets_a_sentence(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence
