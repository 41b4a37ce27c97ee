"""Dropout keeps the mean, in all its forms; what is sampled has the moments that the equations give."""

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.channel.drop_connect import DropConnect
from wonderland.nn.channel.dropout import ChannelDropout, Dropout, drop
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.channel.monte_carlo import drops, monte_carlo
from wonderland.nn.norms.batch_norm import BatchNorm
from wonderland.nn.vision.residual_convolution import ResidualConvolution


def said(call) -> str:
    with pytest.raises(WonderlandError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("shared", [(), (1,), (2,), (1, 2)])
def test_inverted_dropout_keeps_the_mean(rate, shared):
    x = torch.randn(1, 3, 4, dtype=torch.float64)
    draws = drop(x.expand(40_000, 3, 4), rate, shared=shared)
    # Five standard errors of a mean of 40,000 draws, each of variance x^2 p / (1 - p).
    bound = 5 * x[0].abs() * (rate / (1 - rate) / 40_000) ** 0.5
    assert bool(((draws.mean(0) - x[0]).abs() <= bound).all())
    kept = draws[draws != 0] / x.expand_as(draws)[draws != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - rate)))


@pytest.mark.parametrize("kind", [Dropout, ChannelDropout])
def test_the_modules_keep_the_mean(kind):
    block, x = kind(8, dropout=0.3), torch.randn(1, 3, 8, dtype=torch.float64)
    draws = block(x.expand(20_000, 3, 8))
    bound = 5 * x[0].abs() * (0.3 / 0.7 / 20_000) ** 0.5
    assert bool(((draws.mean(0) - x[0]).abs() <= bound).all())
    dropped = draws == 0
    assert dropped.double().mean().item() == pytest.approx(0.3, abs=0.01)
    together = bool((dropped == dropped[:, :1]).all())  # a channel goes for all tokens at once
    assert together == (kind is ChannelDropout)


def test_what_is_shared_goes_together():
    y = drop(torch.ones(50, 6, 4), 0.5, shared=(1,))
    assert torch.equal(y, y[:, :1].expand_as(y))
    assert 0 < (y[:, 0] == 0).sum() < 200
    y = drop(torch.ones(50, 3, 5, 5), 0.5, shared=(-1, -2))
    assert torch.equal(y, y[:, :, :1, :1].expand_as(y))


@pytest.mark.parametrize("kind", [Dropout, ChannelDropout])
def test_evaluation_and_a_rate_of_zero_do_nothing(kind):
    x = torch.randn(2, 5, 8)
    assert torch.equal(kind(8, dropout=0.5).eval()(x), x)
    assert torch.equal(kind(8, dropout=0)(x), x)
    block = kind(8, dropout=0.5)
    assert not torch.equal(block(x), block(x))


def test_the_gradient_passes_where_the_signal_does():
    x = torch.ones(2, 5, 8, requires_grad=True)
    y = Dropout(8, dropout=0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize("each", [False, True])
def test_drop_connect_has_the_moments_of_its_equation(each):
    layer = DropConnect(6, 3, dropout=0.3, each=each).double()
    x = torch.randn(1, 2, 6, dtype=torch.float64)
    draws = (layer(x.expand(30_000, 2, 6)) if each else torch.cat([layer(x) for _ in range(6_000)])).detach()
    mean, variance = (value.detach()[0] for value in layer.moments(x))
    n = len(draws)
    assert bool(((draws.mean(0) - mean).abs() <= 5 * (variance / n).sqrt()).all())
    torch.testing.assert_close(draws.var(0), variance, rtol=0.1, atol=1e-6)
    torch.testing.assert_close(layer.eval()(x)[0], mean)


def test_one_draw_serves_the_batch_unless_each_row_has_its_own():
    x = torch.ones(5, 1, 6)
    together, alone = DropConnect(6, 3)(x), DropConnect(6, 3, each=True)(x)
    assert torch.equal(together, together[:1].expand_as(together))
    assert not torch.equal(alone, alone[:1].expand_as(alone))


def test_monte_carlo_of_a_linear_model_converges_to_its_evaluation():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 2)).double()
    x = torch.randn(4, 6, dtype=torch.float64)
    found = monte_carlo(model, x, draws=4000)
    assert bool(((found.mean - model.eval()(x)).abs() <= 5 * found.spread / 4000**0.5).all())
    variance = (x.square() @ model[1].weight.square().T).detach()
    torch.testing.assert_close(found.spread.square(), variance, rtol=0.15, atol=0)


def test_monte_carlo_leaves_every_mode_and_every_statistic_as_it_was():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    model[1].eval()
    modes, before = [one.training for one in model.modules()], model[1].running_mean.clone()
    found = monte_carlo(model, torch.randn(3, 4) + 5, draws=8)
    assert [one.training for one in model.modules()] == modes
    assert torch.equal(model[1].running_mean, before)
    assert bool((found.spread > 0).any())
    assert not found.mean.requires_grad


def test_dropout_inside_our_blocks_is_found():
    assert drops(MLP(4, dropout=0.1))
    assert not drops(MLP(4))
    assert drops(ResidualConvolution(4, dropout=0.2))
    assert bool((monte_carlo(MLP(4, dropout=0.5), torch.randn(2, 3, 4)).spread > 0).any())


def test_wrong_use_meets_a_sentence():
    assert said(lambda: Dropout(4, dropout=1)) == (
        "Dropout takes a dropout probability of at least 0 and below 1, not 1."
    )
    assert said(lambda: drop(torch.ones(2), -0.1)) == (
        "drop takes a dropout probability of at least 0 and below 1, not -0.1."
    )
    assert said(lambda: DropConnect(4, 2, dropout=1.5)) == (
        "DropConnect takes a dropout probability of at least 0 and below 1, not 1.5."
    )
    assert said(lambda: DropConnect(4, 0)) == "DropConnect takes a dim and outputs of at least 1, not 4 and 0."
    assert said(lambda: monte_carlo(BatchNorm(4), torch.ones(1, 2, 4))) == (
        "monte_carlo takes a model with dropout in it: without, every draw is the same."
    )
    assert said(lambda: monte_carlo(MLP(4, dropout=0.5), torch.ones(1, 2, 4), draws=1)) == (
        "monte_carlo takes at least 2 draws, which have a spread, not 1."
    )
