"""Variational layers: all three ways draw the same distribution, and learn a known posterior."""

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn import VariationalLinear, divergence


@pytest.mark.parametrize("method", ["reparametrised", "local", "flipout"])
def test_draws_have_the_same_moments(method):
    torch.manual_seed(0)
    layer = VariationalLinear(3, 2, spread=0.3, method=method)
    x = torch.tensor([[1.0, -2.0, 0.5]])
    drawn = torch.stack([layer(x)[0] for _ in range(4000)])
    layer.sampling = False
    assert drawn.mean(0).detach().numpy() == pytest.approx(layer(x)[0].detach().numpy(), abs=0.06)
    wanted = 0.09 * (x.square().sum() + 1)
    assert drawn.var(0).detach().numpy() == pytest.approx([wanted.item()] * 2, rel=0.1)


def test_rows_of_a_batch_are_uncorrelated_unless_one_matrix_is_drawn():
    x = torch.ones(2, 8)
    found = {}
    for method in ("reparametrised", "local", "flipout"):
        torch.manual_seed(0)
        layer = VariationalLinear(8, 1, bias=False, spread=0.5, method=method)
        drawn = torch.stack([layer(x)[:, 0] for _ in range(2000)]).detach()
        found[method] = torch.corrcoef(drawn.T)[0, 1].item()
    assert found["reparametrised"] > 0.99
    assert abs(found["local"]) < 0.1
    assert abs(found["flipout"]) < 0.1


def test_the_divergence_is_that_of_gaussians():
    torch.manual_seed(0)
    layer = VariationalLinear(3, 2, prior=0.7, spread=0.2)
    q = torch.distributions.Normal(layer.weight, nn.functional.softplus(layer.weight_spread))
    b = torch.distributions.Normal(layer.bias, nn.functional.softplus(layer.bias_spread))
    prior = torch.distributions.Normal(0.0, 0.7)
    kl = torch.distributions.kl_divergence
    assert divergence(layer).item() == pytest.approx((kl(q, prior).sum() + kl(b, prior).sum()).item(), rel=1e-5)


@pytest.mark.parametrize("method", ["reparametrised", "local", "flipout"])
def test_a_line_learns_its_posterior(method):
    """One weight, known noise: mean and deviation of the posterior are known."""
    torch.manual_seed(0)
    x = torch.randn(50, 1)
    y = 0.8 * x + 0.5 * torch.randn(50, 1)
    layer = VariationalLinear(1, 1, bias=False, prior=1.0, method=method)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.03)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)
    for _ in range(600):
        optimizer.zero_grad()
        fit = sum((layer(x) - y).square().sum() / (2 * 0.25) for _ in range(2)) / 2
        (fit + divergence(layer)).backward()
        optimizer.step()
        schedule.step()
    precision = x.square().sum() / 0.25 + 1
    assert layer.weight.item() == pytest.approx(((x * y).sum() / 0.25 / precision).item(), abs=0.03)
    spread = nn.functional.softplus(layer.weight_spread).item()
    assert spread == pytest.approx(precision.rsqrt().item(), rel=0.3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: VariationalLinear(1, 1, method="x"), "`method` is one of reparametrised, local, flipout, not 'x'."),
        (lambda: VariationalLinear(1, 1, prior=0.0), "`prior` has to be a positive number, not 0.0."),
        (
            lambda: divergence(nn.Linear(1, 1)),
            "The model has no variational layer, so there is no divergence from a prior.",
        ),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words
