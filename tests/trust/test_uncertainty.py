"""Uncertainty: parts add up, Laplace's covariance is the exact one where it can be, draws have the posterior's moments."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn import monte_carlo
from wonderland.solvers import bayesian_regression
from wonderland.trust import (
    KroneckerLaplace,
    LastLayerLaplace,
    NetworkPosterior,
    Predicted,
    Swag,
    class_uncertainty,
    detection,
    energy_scores,
    ensemble_outputs,
    mahalanobis,
    neighbour_scores,
    number_uncertainty,
    strange_limit,
    strangeness,
)
from wonderland.trust.out_of_distribution import confidence_scores


def test_the_parts_add_up():
    generator = np.random.default_rng(0)
    p = generator.dirichlet(np.ones(4), (7, 50))
    found = class_uncertainty(p)
    assert found.total == pytest.approx(found.aleatoric + found.epistemic)
    divergence = (p * np.log(p / p.mean(0))).sum(-1).mean(0)
    assert found.epistemic == pytest.approx(divergence)
    assert class_uncertainty(p[:1]).epistemic == pytest.approx(0, abs=1e-12)
    means, wide = generator.normal(size=(7, 50)), generator.random((7, 50))
    drawn = generator.normal(means, np.sqrt(wide), (4000, 7, 50)).reshape(-1, 50)
    assert number_uncertainty(means, wide).total == pytest.approx(drawn.var(0), rel=0.08)
    assert number_uncertainty(means).aleatoric.sum() == 0


def rows(n=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=generator)
    return x, (x[:, 0] + 0.5 * torch.randn(n, generator=generator) > 0).long()


def trained(model, x, y, loss, steps=300, decay=1e-2):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=decay)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    return model


def test_last_layer_laplace_of_a_line_is_bayesian_regression():
    """With a fixed prior and noise, the Gaussian of a linear model's weights is exact."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 3, generator=generator).double()
    y = x @ torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64) + 0.3 * torch.randn(40, generator=generator).double()
    model = nn.Linear(3, 1, bias=False).double()
    precision = x.T @ x / 0.09 + torch.eye(3)
    with torch.no_grad():
        model.weight.copy_(torch.linalg.solve(precision, x.T @ y / 0.09).unsqueeze(0))
    new = torch.randn(5, 3, generator=generator).double()
    exact = torch.einsum("nd,de,ne->n", new, torch.linalg.inv(precision), new)
    for kind in (LastLayerLaplace, KroneckerLaplace):
        fit = kind(model, likelihood="gaussian", strength=1.0, noise=0.09).fit(x, y)
        assert fit.predict(new).covariance.flatten().numpy() == pytest.approx(exact.numpy(), rel=1e-9)
        # The evidence is that of the marginal Gaussian of y.
        marginal = torch.distributions.MultivariateNormal(
            torch.zeros(40).double(), x @ x.T + 0.09 * torch.eye(40).double()
        )
        assert fit.evidence == pytest.approx(float(marginal.log_prob(y)), abs=1e-6)


def test_last_layer_curvature_is_the_hessian_of_the_loss():
    torch.manual_seed(0)
    x, y = rows()
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)).double()
    fit = LastLayerLaplace(model, strength=0.5).fit(x.double(), y)
    phi = torch.cat([torch.tanh(model[0](x.double())), torch.ones(60, 1)], 1).detach()
    flat = torch.cat([model[2].weight, model[2].bias.unsqueeze(1)], 1).detach().flatten()
    hessian = torch.autograd.functional.hessian(
        lambda w: nn.functional.cross_entropy(phi @ w.reshape(2, 4).T, y, reduction="sum"), flat
    )
    exact = torch.linalg.inv(hessian + 0.5 * torch.eye(8).double())
    J = torch.func.jacrev(lambda w: phi @ w.reshape(2, 4).T)(flat)
    assert fit.predict(x.double()).covariance.numpy() == pytest.approx((J @ exact @ J.mT).numpy(), abs=1e-8)


@pytest.mark.parametrize("kind", [LastLayerLaplace, KroneckerLaplace])
def test_laplace_is_less_sure_far_away(kind):
    torch.manual_seed(0)
    x, y = rows()
    model = trained(nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)), x, y, nn.functional.cross_entropy)
    model.train()
    fit = kind(model).fit(x, y)
    assert model.training
    near, far = fit.predict(torch.tensor([[2.0, 0.0]])), fit.predict(torch.tensor([[30.0, 10.0]]))
    assert far.covariance.diagonal(dim1=1, dim2=2).sum() > near.covariance.diagonal(dim1=1, dim2=2).sum()
    plain = model(torch.tensor([[30.0, 10.0]])).softmax(-1).max()
    assert far.probabilities().max() < plain
    drawn = near.draws(20_000, torch.Generator().manual_seed(0))
    assert torch.cov(drawn[:, 0].T).numpy() == pytest.approx(near.covariance[0].numpy(), rel=0.1, abs=0.02)
    assert isinstance(near, Predicted)


def test_kronecker_curvature_of_one_row_is_exact():
    """For a single row the curvature of a layer is a Kronecker product, nothing is lost."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)).double()
    x, y = torch.randn(1, 2).double(), torch.tensor([1])
    fit = KroneckerLaplace(model, strength=0.3).fit(x, y)
    names = [(("0.weight", "0.bias"), model[0]), (("2.weight", "2.bias"), model[2])]
    total = torch.zeros(2, 2).double()
    parameters = dict(model.named_parameters())
    for pair, _ in names:
        own = {name: parameters[name].detach() for name in pair}
        J = torch.func.jacrev(lambda w: torch.func.functional_call(model, {**parameters, **w}, (x,))[0])(own)
        flat = torch.cat([J[name].reshape(2, -1) for name in pair], 1).detach()
        p = model(x)[0].softmax(-1).detach()
        H = flat.T @ (torch.diag(p) - torch.outer(p, p)) @ flat
        total += flat @ torch.linalg.inv(H + 0.3 * torch.eye(len(H)).double()) @ flat.T
    assert fit.predict(x).covariance[0].numpy() == pytest.approx(total.numpy(), abs=1e-8)


def test_ensembles_disagree_where_there_are_no_rows():
    x = torch.cat([torch.linspace(-3, -1, 30), torch.linspace(1, 3, 30)]).unsqueeze(1)
    y = torch.sin(2 * x)
    models = []
    for seed in range(4):
        torch.manual_seed(seed)
        models.append(
            trained(
                nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)), x, y, nn.functional.mse_loss, 400, 0.0
            )
        )
    outputs = ensemble_outputs(models, torch.tensor([[-2.0], [0.0], [2.0], [6.0]]))[..., 0]
    spread = number_uncertainty(outputs.numpy()).epistemic
    assert spread[3] > 10 * max(spread[0], spread[2])
    assert all(model.training for model in models)


def test_dropout_leaves_batch_norm_alone():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))
    model(torch.randn(64, 2))
    before = model[1].running_mean.clone()
    alone = monte_carlo(model, torch.ones(1, 2), draws=300).mean
    among = monte_carlo(model, torch.cat([torch.ones(1, 2), 50 * torch.randn(9, 2)]), draws=300).mean[:1]
    assert torch.equal(model[1].running_mean, before)
    assert (alone - among).abs().item() < 0.1  # other rows of the batch change nothing but the draws


def test_swag_has_the_moments_of_what_it_collected():
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    base, root = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([[0.3, 0.0, 0.0], [0.2, 0.1, 0.0], [0.0, 0.1, 0.2]])
    swag = Swag(model, rank=200)
    for _ in range(400):
        swag._write((base + root @ torch.randn(3)).double())
        swag.collect()
    generator = torch.Generator().manual_seed(0)
    drawn = []
    for _ in range(3000):
        swag.draw(generator)
        drawn.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    drawn = torch.stack(drawn)
    assert drawn.mean(0).numpy() == pytest.approx(base.numpy(), abs=0.05)
    assert drawn.var(0).numpy() == pytest.approx((root @ root.T).diagonal().numpy(), rel=0.25)
    # Half of the covariance is diagonal, so correlations are half as strong.
    assert torch.cov(drawn.T)[0, 1].item() == pytest.approx(0.06 / 2, rel=0.35)
    swag.mean()
    assert model.bias.item() == pytest.approx(0.5, abs=0.05)


def test_swag_refreshes_batch_norm():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    swag = Swag(model, rank=0)
    x = torch.randn(100, 2)
    for _ in range(3):
        nn.init.normal_(model[0].weight)
        swag.collect()
    swag.draw(torch.Generator().manual_seed(0))
    swag.refresh([x[:50], x[50:]])
    wanted = model[0](x).mean(0).detach()
    assert model[1].running_mean.numpy() == pytest.approx(wanted.numpy(), abs=1e-5)
    assert model[1].momentum == 0.1


def test_the_posterior_of_a_line_by_hamiltonian_draws():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, 1, generator=generator).double()
    y = 0.7 * x + 0.2 * torch.randn(30, 1, generator=generator).double()
    model = nn.Linear(1, 1).double()
    posterior = NetworkPosterior(model, likelihood="gaussian", prior=1.0, noise=0.2).fit(
        x, y, draws=800, warmup=200, leapfrogs=6
    )
    design = torch.cat([x, torch.ones(30, 1)], 1)
    covariance = torch.linalg.inv(design.T @ design / 0.04 + torch.eye(2))
    mean = covariance @ design.T @ y[:, 0] / 0.04
    assert posterior.draws.values.mean(0).numpy() == pytest.approx(mean.numpy(), abs=0.01)
    assert torch.cov(posterior.draws.values.T).numpy() == pytest.approx(covariance.numpy(), rel=0.3, abs=2e-4)
    assert posterior.outputs(x).shape == (800, 30, 1)
    assert 0.6 < posterior.draws.accepted < 1


def test_bayesian_regression_is_scikit_learns():
    from sklearn.linear_model import BayesianRidge

    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 4))
    y = X @ [1.0, 0.0, -0.5, 0.2] + 0.3 * generator.normal(size=50)
    ours = bayesian_regression(X, y)
    theirs = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-12, max_iter=5000).fit(X, y)
    assert ours.weights.numpy() == pytest.approx(theirs.coef_, abs=1e-3)
    # They divide by n - γ, and count no row for the bias.
    assert ours.noise == pytest.approx((1 / theirs.alpha_) * (50 - 4) / (50 - 5), rel=0.02)
    hits = []
    for seed in range(50):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(30, 4))
        y = X @ [1.0, 0.0, -0.5, 0.2] + 0.3 * generator.normal(size=30)
        low, high = bayesian_regression(X[:20], y[:20]).band(X[20:], 0.9)
        hits.append(((low.numpy() <= y[20:]) & (y[20:] <= high.numpy())).mean())
    assert 0.84 < np.mean(hits) < 0.94
    twin = bayesian_regression(np.c_[X, X], y)
    assert twin.weights.isfinite().all()
    # The evidence is that of a Gaussian with a flat prior on the bias.
    fixed = bayesian_regression(X, y, noise=0.09, prior=2.0)
    K = 2.0 * X @ X.T + 0.09 * np.eye(30)
    inverse = np.linalg.inv(K)
    ones = np.ones(30)
    q = ones @ inverse @ ones
    P = inverse - np.outer(inverse @ ones, inverse @ ones) / q
    exact = -0.5 * (y @ P @ y + np.linalg.slogdet(K)[1] + math.log(q) + 29 * math.log(2 * math.pi))
    assert fixed.evidence == pytest.approx(exact, abs=1e-6)


def test_strange_rows_score_high():
    generator = np.random.default_rng(0)
    y = generator.integers(0, 3, 600)
    centres = 6 * np.eye(3, 5)
    known = centres[y] + generator.normal(size=(600, 5))
    strange = generator.normal(0, 1, (200, 5)) + np.array([0, 0, 0, 7, 0])
    fit = mahalanobis(known[:400], y[:400])
    assert detection(fit.scores(known[400:]), fit.scores(strange)).auroc > 0.99
    scores = neighbour_scores(known[:400], known[400:]), neighbour_scores(known[:400], strange)
    assert detection(*scores).auroc > 0.99
    logits = known[:, :3], strange[:, :3]
    assert detection(energy_scores(logits[0]), energy_scores(logits[1])).auroc > 0.95
    assert detection(confidence_scores(logits[0]), confidence_scores(logits[1])).auroc > 0.8
    p = strangeness(fit.scores(known[400:500]), fit.scores(known[500:]))
    assert (p <= 0.1).mean() == pytest.approx(0.1, abs=0.08)
    assert (strangeness(fit.scores(known[400:500]), fit.scores(strange)) <= 0.02).mean() > 0.9
    assert strange_limit(np.arange(5), 0.99) == np.inf
    assert np.isfinite(mahalanobis(np.ones((10, 2)), np.zeros(10)).scores(np.ones((1, 2)))).all()


X, Y = rows()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: number_uncertainty([[1.0]], [[1.0, 2.0]]), "`variances` has shape (1, 2) where `means` has (1, 1)."),
        (lambda: number_uncertainty([[1.0]], [[-1.0]]), "`variances` holds -1: variances are 0 or more."),
        (lambda: ensemble_outputs([]), "A deep ensemble needs at least one network."),
        (
            lambda: LastLayerLaplace(nn.ReLU()),
            "Laplace's approximation of the last layer needs a model that ends in nn.Linear.",
        ),
        (lambda: KroneckerLaplace(nn.ReLU()), "Laplace's approximation needs a model with nn.Linear in it."),
        (
            lambda: LastLayerLaplace(nn.Linear(2, 2), likelihood="x"),
            "`likelihood` is 'categorical' or 'gaussian', not 'x'.",
        ),
        (
            lambda: LastLayerLaplace(nn.Linear(2, 2)).predict(X),
            "Call `fit` before `predict`: the curvature is not known yet.",
        ),
        (
            lambda: KroneckerLaplace(nn.Linear(2, 2)).predict(X),
            "Call `fit` before `predict`: the curvature is not known yet.",
        ),
        (
            lambda: LastLayerLaplace(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3), nn.AdaptiveAvgPool1d(2))).fit(
                X, Y
            ),
            "The model has to end in its last nn.Linear, with a row for each example.",
        ),
        (lambda: Swag(nn.Linear(2, 2), rank=-1), "`rank` has to be 0 or more, not -1."),
        (
            lambda: Swag(nn.Linear(2, 2)).draw(),
            "SWAG needs 2 collected weights or more, not 0: call `collect` each epoch.",
        ),
        (
            lambda: NetworkPosterior(nn.Linear(100, 100)),
            "The network has 10,100 weights: Hamiltonian Monte Carlo is for 5,000 at most. Use Laplace's approximation or "
            "an ensemble.",
        ),
        (lambda: NetworkPosterior(nn.Linear(2, 2)).outputs(X), "Call `fit` first: there are no draws yet."),
        (
            lambda: NetworkPosterior(nn.Linear(2, 2), likelihood="x"),
            "`likelihood` is 'categorical' or 'gaussian', not 'x'.",
        ),
        (
            lambda: neighbour_scores([[1.0]], [[1.0]], k=2),
            "`k` has to lie between 1 and the 1 training rows, not at 2.",
        ),
        (lambda: neighbour_scores([[1.0]], [[1.0, 2.0]]), "`features` has 2 columns where `train` has 1."),
        (
            lambda: mahalanobis([[1.0], [2.0]], [0, 1]).scores([[1.0, 2.0]]),
            "`features` has 2 columns where the means have 1.",
        ),
        (lambda: bayesian_regression([[1.0]], [1.0]), "`X` has 1 rows: Bayesian regression needs 3 or more."),
        (lambda: bayesian_regression([[1.0]] * 3, [1.0] * 3, noise=-1.0), "`noise` is a variance above 0, not -1.0."),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words
