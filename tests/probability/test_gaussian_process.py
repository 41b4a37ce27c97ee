"""Gaussian processes: kernels, exact inference and its gradients equal scikit-learn's and gpytorch's; nothing fails on
duplicates; sparse forms meet the exact ones."""

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn import datasets
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from wonderland.core import WonderlandError
from wonderland.probability.gaussian_process import (
    RBF,
    ArcSine,
    Constant,
    GaussianProcess,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    fit_sparse,
    fit_variational,
    laplace_classifier,
    regression,
)
from wonderland.probability.gaussian_process.bfgs import bfgs
from wonderland.probability.gaussian_process.classification import _mode, latent_samples
from wonderland.probability.gaussian_process.inducing import greedy_places
from wonderland.probability.gaussian_process.sparse import sparse_bound

PAIRS = {
    "rbf": (RBF(0.7), sk.RBF(0.7)),
    "ard": (RBF([0.5, 1.0, 2.0]), sk.RBF([0.5, 1.0, 2.0])),
    "matern12": (Matern(0.8, nu=0.5), sk.Matern(0.8, nu=0.5)),
    "matern32": (Matern([0.8, 1.0, 3.0], nu=1.5), sk.Matern([0.8, 1.0, 3.0], nu=1.5)),
    "matern52": (Matern([0.8, 1.0, 3.0], nu=2.5), sk.Matern([0.8, 1.0, 3.0], nu=2.5)),
    "quadratic": (RationalQuadratic(0.9, 1.3), sk.RationalQuadratic(0.9, 1.3)),
    "periodic": (Periodic(1.2, 2.0), sk.ExpSineSquared(1.2, 2.0)),
    "linear": (Linear(1.5), sk.DotProduct(1.5)),
    "scaled": (2.0 * RBF(0.7), sk.ConstantKernel(2.0) * sk.RBF(0.7)),
    "sum": (RBF(0.7) + 0.5 * Matern(2.0), sk.RBF(0.7) + sk.ConstantKernel(0.5) * sk.Matern(2.0, nu=2.5)),
    "product": (RBF(0.7) * Linear(1.0), sk.RBF(0.7) * sk.DotProduct(1.0)),
}


def drawn(rows=60, features=3, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, features))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * generator.normal(size=rows)


@pytest.mark.parametrize("name", PAIRS)
def test_kernels_and_inference_equal_scikit_learns(name):
    ours, theirs = PAIRS[name]
    X, y = drawn()
    new, _ = drawn(20, seed=1)
    if name == "periodic":
        X, new = X[:, :1].copy(), new[:, :1].copy()
    tensor = torch.from_numpy(X)
    assert ours(tensor).numpy() == pytest.approx(theirs(X), abs=1e-8)
    assert ours(tensor, torch.from_numpy(new)).numpy() == pytest.approx(theirs(X, new), abs=1e-8)
    assert ours.diagonal(tensor).numpy() == pytest.approx(theirs.diag(X), abs=1e-8)
    peer = GaussianProcessRegressor(theirs + sk.WhiteKernel(0.05), alpha=0.0, optimizer=None).fit(X, y)
    process = GaussianProcess(ours, 0.05)
    posterior = process.condition(X, y)
    assert posterior.jitter == 0
    mean, variance = posterior.predict(new, noise=True)
    their_mean, their_deviation = peer.predict(new, return_std=True)
    assert mean.numpy() == pytest.approx(their_mean, abs=1e-8)
    assert variance.numpy() == pytest.approx(their_deviation**2, abs=1e-8)
    value, gradient = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    evidence = process.evidence(X, y)
    assert evidence.total == pytest.approx(value, abs=1e-8)
    assert posterior.evidence == pytest.approx(value, abs=1e-8)
    expected = gradient.copy()
    if name == "quadratic":  # theirs has alpha first
        expected[:2] = gradient[:2][::-1]
    assert evidence.gradient.numpy() == pytest.approx(expected, abs=1e-8 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", ["rbf", "ard", "matern32", "matern52", "quadratic"])
def test_equal_to_gpytorch(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gpytorch = pytest.importorskip("gpytorch")
        base = {
            "rbf": lambda: gpytorch.kernels.RBFKernel(),
            "ard": lambda: gpytorch.kernels.RBFKernel(ard_num_dims=3),
            "matern32": lambda: gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=3),
            "matern52": lambda: gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=3),
            "quadratic": lambda: gpytorch.kernels.RQKernel(),
        }[name]()
        ours = PAIRS[name][0]
        X, y = drawn()
        x, t = torch.from_numpy(X), torch.from_numpy(y)

        class Model(gpytorch.models.ExactGP):
            def __init__(self, likelihood):
                super().__init__(x, t, likelihood)
                self.mean_module = gpytorch.means.ZeroMean()
                self.covar_module = gpytorch.kernels.ScaleKernel(base)

            def forward(self, places):
                return gpytorch.distributions.MultivariateNormal(self.mean_module(places), self.covar_module(places))

        likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-8))
        model = Model(likelihood).double()
        likelihood.double()
        base.lengthscale = ours.values["length_scale"].reshape(1, -1)
        if name == "quadratic":
            base.alpha = ours.values["alpha"]
        model.covar_module.outputscale = torch.tensor(1.7, dtype=torch.float64)
        likelihood.noise = torch.tensor(0.05, dtype=torch.float64)
        process = GaussianProcess(model.covar_module.outputscale.item() * ours, likelihood.noise.item())
        off = gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
        with off, gpytorch.settings.cholesky_jitter(double_value=0.0):
            model.train()
            likelihood.train()
            value = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), t) * len(y)
            value.backward()
            constraint = model.covar_module.raw_outputscale_constraint
            # Chain rule from their softplus parameters to our logarithms.
            raw = model.covar_module.raw_outputscale.detach().requires_grad_()
            constraint.transform(raw).log().backward()
            by_scale = float(model.covar_module.raw_outputscale.grad / raw.grad)
            model.eval()
            likelihood.eval()
            new = torch.from_numpy(drawn(20, seed=1)[0])
            with torch.no_grad():
                there = model(new)
        evidence = process.evidence(X, y)
        assert evidence.total == pytest.approx(float(value.detach()), abs=1e-8)
        assert float(evidence.gradient[0]) == pytest.approx(by_scale, abs=1e-8)
        mean, variance = process.condition(X, y).predict(new)
        assert mean.numpy() == pytest.approx(there.mean.numpy(), abs=1e-8)
        assert variance.numpy() == pytest.approx(there.variance.numpy(), abs=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [RBF([0.5, 1.0, 2.0]), Matern(0.8, nu=0.5), Periodic(1.2, 2.0), Polynomial(3, 0.7), ArcSine(0.6, 1.4),
     RationalQuadratic([1.0, 2.0, 0.5], 0.8), Constant(2.0) + Linear() * RBF()],
    ids=lambda kernel: repr(kernel)[:20],
)  # fmt: skip
def test_gradients_are_those_of_differences(kernel):
    X, y = drawn(25)
    process = GaussianProcess(kernel, 0.1)
    gradient = process.evidence(X, y).gradient
    theta = kernel.theta
    for i in range(len(theta)):
        ends = []
        for step in (1e-5, -1e-5):
            moved = theta.clone()
            moved[i] += step
            ends.append(GaussianProcess(kernel.with_theta(moved), 0.1).evidence(X, y).total)
        assert float(gradient[i]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "kernel", [RBF([0.5, 1.0]), Matern(1.0, nu=1.5), Matern(1.0), RationalQuadratic(), Periodic(1.0, 3.0)]
)
def test_gradients_by_places(kernel):
    x = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    y = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: kernel(a, b), (x, y))
    wide = RBF(3.0)
    far = torch.randn(4, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: wide(a), (far,))


def test_the_arcsine_kernel_is_an_endless_network():
    """erf units with weights from N(0, Σ): the mean of products of 200,000 of them."""
    generator = torch.Generator().manual_seed(0)
    x = torch.tensor([[0.3, -1.0], [0.8, 0.5]], dtype=torch.float64)
    weights = torch.randn(200_000, 2, dtype=torch.float64, generator=generator) * math.sqrt(0.6)
    bias = torch.randn(200_000, 1, dtype=torch.float64, generator=generator) * math.sqrt(1.4)
    units = torch.erf(weights @ x.T + bias)
    assert ArcSine(0.6, 1.4)(x).numpy() == pytest.approx((units.T @ units / 200_000).numpy(), abs=0.01)


def test_duplicate_rows_work_without_noise():
    X = np.repeat(np.linspace(0, 1, 5), 4)
    y = np.repeat(np.arange(5.0), 4) + np.tile([0, 0.1, -0.1, 0], 5)
    for kernel in (RBF(0.3), Matern(0.3, nu=0.5), Linear(), Periodic()):
        posterior = GaussianProcess(kernel, 0.0).condition(X, y)
        mean, variance = posterior.predict(X)
        assert mean.isfinite().all()
        assert (variance >= 0).all()
    assert GaussianProcess(RBF(0.3), 0.0).condition(X, y).predict([0.0, 1.0])[0].numpy() == pytest.approx(
        [0, 4], abs=0.01
    )
    assert GaussianProcess(RBF(0.3), 0.0).condition(X, y).jitter > 0
    fitted = GaussianProcess(RBF()).fit(X, y)
    assert fitted.predict(X, noise=True)[1].isfinite().all()
    assert GaussianProcess(RBF()).fit(np.zeros(10), np.zeros(10)).predict([0.0])[0].item() == pytest.approx(0)


def test_three_terms_and_the_leave_one_out():
    X, y = drawn(20)
    process = GaussianProcess(RBF(0.7), 0.05)
    evidence = process.evidence(X, y)
    assert evidence.constant == pytest.approx(-10 * math.log(2 * math.pi))
    assert evidence.fit < 0
    assert evidence.total == pytest.approx(evidence.fit + evidence.complexity + evidence.constant)
    mean, variance = process.condition(X, y).leave_one_out()
    for i in range(20):
        kept = np.arange(20) != i
        one, wide = process.condition(X[kept], y[kept]).predict(X[i : i + 1], noise=True)
        assert float(mean[i]) == pytest.approx(one.item(), abs=1e-8)
        assert float(variance[i]) == pytest.approx(wide.item(), abs=1e-8)


def test_samples_have_the_moments_of_the_process():
    places = np.linspace(0, 3, 6)
    process = GaussianProcess(RBF(0.8), 0.01)
    prior = process.samples(places, 20_000)
    assert torch.cov(prior.T).numpy() == pytest.approx(
        process.kernel(torch.from_numpy(places[:, None])).numpy(), abs=0.05
    )
    posterior = process.condition([0.0, 1.5], [1.0, -1.0])
    drawn_ = posterior.samples(places, 20_000, seed=3)
    mean, variance = posterior.predict(places)
    assert drawn_.mean(0).numpy() == pytest.approx(mean.numpy(), abs=0.02)
    assert drawn_.var(0).numpy() == pytest.approx(variance.numpy(), abs=0.03)
    assert torch.equal(posterior.samples(places, 3, seed=3), posterior.samples(places, 3, seed=3))
    low, high = posterior.band(places, 0.95)
    assert ((high - low) / 2 / (variance + 0.01).sqrt()).numpy() == pytest.approx(np.full(6, 1.95996), abs=1e-4)


def test_a_fit_reaches_scikit_learns_likelihood():
    X, y = drawn(80)
    for ours, theirs in (
        (1.0 * RBF([1.0, 1.0, 1.0]), sk.ConstantKernel() * sk.RBF([1.0, 1.0, 1.0])),
        (1.0 * Matern(1.0, nu=1.5), sk.ConstantKernel() * sk.Matern(1.0, nu=1.5)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = GaussianProcessRegressor(theirs + sk.WhiteKernel(0.01), alpha=0.0).fit(X, y)
        posterior = GaussianProcess(ours, 0.01).fit(X, y, standardise=False)
        assert posterior.evidence >= peer.log_marginal_likelihood_value_ - 1e-3


def test_restarts_leave_a_bad_start():
    X = np.linspace(0, 10, 40)
    y = np.sin(X)
    bad = GaussianProcess(RBF(1e-3), 1.0)
    alone, several = bad.fit(X, y), bad.fit(X, y, restarts=6)
    assert several.evidence >= alone.evidence
    assert several.evidence > 50


def test_bands_cover():
    hits = []
    for seed in range(20):
        X, y = drawn(150, seed=seed)
        low, high = GaussianProcess(1.0 * RBF([1.0, 1.0, 1.0])).fit(X[:100], y[:100]).band(X[100:], 0.9)
        hits.append(((low <= torch.from_numpy(y[100:])) & (torch.from_numpy(y[100:]) <= high)).double().mean())
    assert np.mean(hits) == pytest.approx(0.9, abs=0.04)


def test_scikit_learns_own_example_of_regression():
    X, y = datasets.make_friedman2(n_samples=500, noise=0, random_state=0)
    process = GaussianProcess(Linear(), 1.0).fit(X, y, standardise=False, learn_noise=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = GaussianProcessRegressor(sk.DotProduct() + sk.WhiteKernel(), random_state=0).fit(X, y)
    assert process.evidence >= peer.log_marginal_likelihood_value_ - 1e-2
    mean, variance = process.predict(X[:2], noise=True)
    assert mean.numpy() == pytest.approx([653.0, 592.1], abs=0.2)
    assert variance.sqrt().numpy() == pytest.approx([316.6, 316.6], abs=0.2)
    residual = y - process.predict(X)[0].numpy()
    assert 1 - residual @ residual / ((y - y.mean()) ** 2).sum() == pytest.approx(0.3680, abs=1e-3)


def test_classification_equals_scikit_learns():
    X, y = datasets.load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = GaussianProcessClassifier(sk.ConstantKernel(1.0) * sk.RBF(1.0), optimizer=None, random_state=0).fit(X, y)
        ours = laplace_classifier(1.0 * RBF(1.0), X, y, fit=False)
        assert ours.probabilities(X).numpy() == pytest.approx(peer.predict_proba(X), abs=1e-8)
        assert ours.evidence == pytest.approx(peer.log_marginal_likelihood(), abs=1e-8)
        binary = GaussianProcessClassifier(sk.ConstantKernel(2.0) * sk.RBF(1.3), optimizer=None).fit(X[50:], y[50:])
        value, gradient = binary.base_estimator_.log_marginal_likelihood(binary.kernel_.theta, eval_gradient=True)
        mode, slope = _mode(2.0 * RBF(1.3), torch.from_numpy(X[50:]), torch.from_numpy(y[50:] - 1.0), slope=True)
    assert mode.evidence == pytest.approx(value, abs=1e-8)
    assert slope.numpy() == pytest.approx(gradient, abs=1e-8)


def test_scikit_learns_own_example_of_classification():
    """H42: 0.9866 and a first row of 0.8355, 0.0323, 0.1322."""
    X, y = datasets.load_iris(return_X_y=True)
    model = laplace_classifier(1.0 * RBF(1.0), X, y)
    assert (model.predict(X).numpy() == y).mean() == pytest.approx(0.98667, abs=1e-4)
    assert model.probabilities(X[:1])[0].numpy() == pytest.approx([0.8355, 0.0323, 0.1322], abs=2e-3)
    assert latent_samples(model, X[:2], 5).shape == (5, 2, 3)


def test_sparse_meets_exact_where_every_row_is_a_place():
    X, y = drawn(40)
    exact = GaussianProcess(RBF(0.9), 0.05)
    assert sparse_bound(RBF(0.9), 0.05, X, X, y) == pytest.approx(exact.evidence(X, y).total, abs=1e-4)
    some = sparse_bound(RBF(0.9), 0.05, X[:20], X, y)
    assert some < exact.evidence(X, y).total
    model = fit_variational(RBF(0.9), X, y, noise=0.05, inducing=40, steps=1, learn=False)
    target = (y - y.mean()) / y.std()
    assert model.bound == pytest.approx(exact.evidence(X, target).total, abs=1e-2)
    mean, variance = exact.condition(X, y, standardise=True).predict(X)
    assert model.predict(X)[0].numpy() == pytest.approx(mean.numpy(), abs=1e-3)
    assert model.predict(X)[1].numpy() == pytest.approx(variance.numpy(), abs=1e-3)


def test_sparse_regression_of_many_rows():
    X, y = drawn(3000)
    new, truth = drawn(300, seed=9)
    posterior = fit_sparse(1.0 * RBF([1.0, 1.0, 1.0]), X, y, inducing=100, warm_rows=300)
    mean, _ = posterior.predict(new)
    assert float((mean - torch.from_numpy(truth)).square().mean().sqrt()) < 0.13
    low, high = posterior.band(new, 0.9)
    hits = ((low <= torch.from_numpy(truth)) & (torch.from_numpy(truth) <= high)).double().mean()
    assert float(hits) == pytest.approx(0.9, abs=0.05)
    model = fit_variational(1.0 * RBF([1.0, 1.0, 1.0]), X, y, inducing=100, steps=150, batch=256)
    assert float((model.predict(new)[0] - torch.from_numpy(truth)).square().mean().sqrt()) < 0.15


def test_counts_and_classes_by_minibatches():
    generator = np.random.default_rng(0)
    x = generator.uniform(-2, 2, 600)
    counts = generator.poisson(np.exp(np.sin(2 * x) + 1))
    model = fit_variational(1.0 * RBF(1.0), x, counts, likelihood="poisson", inducing=20, steps=150, batch=200)
    assert model.rate([0.0, 0.8, -0.8]).numpy() == pytest.approx(np.exp(np.sin([0.0, 1.6, -1.6]) + 1), rel=0.25)
    labels = (generator.random(600) < 1 / (1 + np.exp(-4 * np.sin(2 * x)))).astype(float)
    model = fit_variational(1.0 * RBF(1.0), x, labels, likelihood="bernoulli", inducing=20, steps=150, batch=200)
    wanted = 1 / (1 + np.exp(-4 * np.sin([0.0, 1.6, -1.6])))
    assert model.probabilities([0.0, 0.8, -0.8]).numpy() == pytest.approx(wanted, abs=0.12)


def test_greedy_places_stop_when_nothing_is_left():
    x = torch.tensor([[0.0]] * 5 + [[1.0]] * 5, dtype=torch.float64)
    assert len(greedy_places(RBF(), x, 10)) == 2


def test_bfgs_stays_in_its_box():
    def rosenbrock(x):
        a, b = x
        value = (1 - a) ** 2 + 100 * (b - a * a) ** 2
        return float(value), np.array([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)])

    free = bfgs(rosenbrock, np.array([-1.0, 1.0]), np.full(2, -5.0), np.full(2, 5.0), steps=500)
    assert free[0] == pytest.approx([1, 1], abs=1e-3)
    boxed = bfgs(rosenbrock, np.array([-1.0, 1.0]), np.full(2, -5.0), np.array([0.5, 5.0]), steps=500)
    assert boxed[0] == pytest.approx([0.5, 0.25], abs=1e-3)


X_, Y_ = drawn(10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: RBF(-1.0), "`length_scale` holds -1: it has to be above 0."),
        (lambda: RBF([[1.0]]), "`length_scale` has shape (1, 1) and has to be one number or a vector."),
        (lambda: Matern(nu=1.0), "`nu` is 0.5, 1.5 or 2.5, not 1.0."),
        (lambda: Polynomial(0), "`degree` has to be a whole number of at least 1, not 0."),
        (lambda: RBF() + "x", "A kernel is combined with kernels and numbers, not with 'x'."),
        (lambda: RBF().with_theta(torch.zeros(2)), "`theta` has 2 entries where the kernel has 1."),
        (
            lambda: GaussianProcess(RBF([1.0, 1.0])).condition(X_, Y_),
            "`length_scale` has 2 entries where rows have 3 features.",
        ),
        (lambda: GaussianProcess(1.0), "`kernel` has to be a kernel such as RBF(), not 1.0."),
        (lambda: GaussianProcess(RBF(), -1.0), "`noise` is a variance of 0 or more, not -1.0."),
        (lambda: GaussianProcess(RBF()).condition(X_, Y_[:3]), "`y` has 3 entries where `X` has 10 rows."),
        (
            lambda: GaussianProcess(RBF()).condition(X_, Y_).predict([[1.0]]),
            "`X` has 1 features where the process was conditioned on 3.",
        ),
        (
            lambda: GaussianProcess(RBF()).condition([[np.inf]], [1.0]),
            "`X` holds inf at index (0, 0): only finite numbers are allowed here.",
        ),
        (
            lambda: laplace_classifier(RBF(), X_, np.zeros(10)),
            "`y` has rows of one class only: every class needs at least one, and there have to be two.",
        ),
        (
            lambda: laplace_classifier(RBF(), X_, np.arange(10) % 2 * 2),
            "`y` has no row of class 1: every class needs at least one, and there have to be two.",
        ),
        (lambda: laplace_classifier(RBF(), X_, Y_), "`y` has to hold labels, whole numbers from 0."),
        (lambda: fit_sparse(RBF(), X_, Y_, noise=0.0), "`noise` has to be above 0 for inducing points, not 0.0."),
        (
            lambda: fit_sparse(RBF(), X_, Y_, inducing=0),
            "The number of inducing points has to be a whole number of at least 1, not 0.",
        ),
        (
            lambda: fit_variational(RBF(), X_, Y_, likelihood="bernoulli"),
            "`y` has to hold 0 and 1 for the Bernoulli likelihood.",
        ),
        (
            lambda: fit_variational(RBF(), X_, Y_, likelihood="poisson"),
            "`y` has to hold counts, whole numbers from 0, for the Poisson likelihood.",
        ),
        (
            lambda: fit_variational(RBF(), X_, Y_, likelihood="x"),
            "`likelihood` has to be one of 'gaussian', 'bernoulli', 'poisson', not 'x'.",
        ),
        (
            lambda: fit_variational(RBF(), X_, Y_, steps=1).probabilities(X_),
            "Probabilities belong to the Bernoulli likelihood; this process has 'gaussian'.",
        ),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words


def test_lapack_in_place_gives_the_same_evidence(monkeypatch):
    pytest.importorskip("scipy")
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(90, 3)), draw.normal(size=90)
    process = GaussianProcess(1.5 * RBF([0.7, 1.0, 2.0]) + Linear(), 0.1)
    fast = process.evidence(X, y)
    monkeypatch.setattr(regression, "in_place", lambda matrix, y: None)
    plain = process.evidence(X, y)
    assert fast.total == pytest.approx(plain.total, rel=1e-12)
    torch.testing.assert_close(fast.gradient, plain.gradient, rtol=1e-9, atol=1e-9)
    repeated = np.repeat(X[:40], 2, 0)  # without noise no factor exists: the jitter of safe_cholesky takes over
    monkeypatch.undo()
    assert math.isfinite(GaussianProcess(RBF(5.0), 0.0).evidence(repeated, y[:80]).total)
