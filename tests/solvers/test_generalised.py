"""Generalised linear models equal scikit-learn's and scipy's."""

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

from wonderland.core import WonderlandError
from wonderland.solvers import generalised_linear

generator = np.random.default_rng(0)
X = generator.normal(size=(300, 3))
ETA = X @ [0.5, -0.3, 0.0] + 0.4
COUNTS = generator.poisson(np.exp(ETA))
AMOUNTS = generator.gamma(3.0, np.exp(ETA) / 3)
CLASSES = (ETA + generator.normal(size=300) > 0).astype(int)
MASS = generator.integers(0, 3, 300)


@pytest.mark.parametrize("mass", [None, MASS])
@pytest.mark.parametrize(
    ("family", "y", "peer", "deviance"),
    [
        ("poisson", COUNTS, PoissonRegressor, mean_poisson_deviance),
        ("gamma", AMOUNTS, GammaRegressor, mean_gamma_deviance),
    ],
)
def test_counts_and_amounts_are_scikit_learns(family, y, peer, deviance, mass):
    fit = generalised_linear(X, y, family=family, sample_weight=mass)
    theirs = peer(alpha=0.0, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(X, y, sample_weight=mass)
    assert fit.weights.numpy() == pytest.approx(theirs.coef_, abs=1e-7)
    assert fit.bias == pytest.approx(theirs.intercept_, abs=1e-7)
    assert fit.mean(X).numpy() == pytest.approx(theirs.predict(X), rel=1e-7)
    total = 300 if mass is None else mass.sum()
    assert fit.deviance == pytest.approx(total * deviance(y, theirs.predict(X), sample_weight=mass), rel=1e-8)


def test_ridge_is_scikit_learns_alpha_times_rows():
    fit = generalised_linear(X, COUNTS, ridge=30.0)
    theirs = PoissonRegressor(alpha=0.1, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(X, COUNTS)
    assert fit.weights.numpy() == pytest.approx(theirs.coef_, abs=1e-7)


def test_probit_is_the_maximum_of_the_normal_likelihood():
    fit = generalised_linear(X, CLASSES, family="probit")

    def loss(theta):
        return -stats.norm.logcdf((2 * CLASSES - 1) * (X @ theta[:3] + theta[3])).sum()

    best = optimize.minimize(loss, np.zeros(4), tol=1e-12, method="BFGS", options={"gtol": 1e-6})
    assert [*fit.weights.tolist(), fit.bias] == pytest.approx(best.x, abs=1e-5)
    assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-8)
    steps = 1e-3 * np.eye(4)
    bend = [
        [
            (loss(best.x + a + b) - loss(best.x + a - b) - loss(best.x - a + b) + loss(best.x - a - b)) / 4e-6
            for b in steps
        ]
        for a in steps
    ]
    assert fit.errors.numpy() == pytest.approx(np.sqrt(np.diag(np.linalg.inv(bend))), rel=1e-4)
    logit = generalised_linear(X, CLASSES, family="logit")
    theirs = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(X, CLASSES)
    assert logit.weights.numpy() == pytest.approx(theirs.coef_[0], abs=1e-4)
    # The two curves agree up to a scale of about 1.6 to 1.7.
    assert float(logit.weights[0] / fit.weights[0]) == pytest.approx(1.7, abs=0.15)
    assert fit.mean(X).numpy() == pytest.approx(logit.mean(X).numpy(), abs=0.05)


def test_an_offset_is_an_exposure():
    exposure = np.exp(generator.normal(size=300))
    y = generator.poisson(exposure * np.exp(ETA))
    fit = generalised_linear(X, y, offset=np.log(exposure))
    assert fit.weights.numpy() == pytest.approx([0.5, -0.3, 0.0], abs=0.12)
    plain = generalised_linear(X, np.repeat(3, 300), bias=True)
    assert plain.mean(X).numpy() == pytest.approx(np.full(300, 3.0))


def test_intervals_of_the_weights_cover():
    hits = []
    for seed in range(100):
        draw = np.random.default_rng(seed)
        x = draw.normal(size=(120, 1))
        fit = generalised_linear(x, draw.poisson(np.exp(0.6 * x[:, 0])))
        hits.append(abs(float(fit.weights[0]) - 0.6) < 1.96 * float(fit.errors[0]))
    assert 0.88 <= np.mean(hits) <= 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: generalised_linear(X, COUNTS, family="x"),
            "`family` has to be one of 'poisson', 'gamma', 'probit', 'logit', not 'x'.",
        ),
        (lambda: generalised_linear(X, COUNTS - 9), f"`y` holds {COUNTS.min() - 9:g}: counts are 0 or more."),
        (lambda: generalised_linear(X, COUNTS * 0.0, family="gamma"), "`y` holds 0: amounts have to be above 0."),
        (lambda: generalised_linear(X, COUNTS, family="probit"), "`y` has to hold 0 and 1."),
        (lambda: generalised_linear(X, COUNTS * 0), "`y` holds only 0: the weights would grow without end."),
        (
            lambda: generalised_linear(X, X[:, 0] > 0, family="probit"),
            "The rows have no finite solution, as when a plane separates the classes: pass ridge > 0.",
        ),
        (
            lambda: generalised_linear(X, COUNTS, sample_weight=-np.ones(300)),
            "`sample_weight` needs one weight of 0 or more for each row, not all 0.",
        ),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words
