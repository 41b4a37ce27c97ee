"""Weights drawn from their posterior: of the last layer by Laplace's approximation, of every layer by SWAG."""

import numpy as np
import pytest
import torch
from torch import nn

import wonderland
from wonderland.core import WonderlandError
from wonderland.models import TableNet
from wonderland.road.training import Training
from wonderland.train.posterior import laplace_draws
from wonderland.trust import LastLayerLaplace
from wonderland.trust.weight_draws import WeightDraws


def test_draws_of_the_last_layer_have_the_covariance_of_its_posterior(monkeypatch):
    monkeypatch.setattr("wonderland.train.posterior.LAPLACE_DRAWS", 4000)
    torch.manual_seed(0)
    model, x, y = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3)), torch.randn(60, 2), torch.arange(60) % 3
    drawn = laplace_draws(model, x, y, "categorical").outputs(model, x[:5]).double()
    expected = LastLayerLaplace(model).fit(x, y).predict(x[:5])
    torch.testing.assert_close(
        drawn.mean(0), expected.mean, atol=0.05 * float(expected.covariance.max()) ** 0.5, rtol=0
    )
    covariance = torch.einsum("knc,knd->ncd", drawn - drawn.mean(0), drawn - drawn.mean(0)) / len(drawn)
    assert float((covariance - expected.covariance).norm() / expected.covariance.norm()) < 0.1


def test_each_member_has_a_posterior_from_its_own_rows():
    torch.manual_seed(0)
    net, x = TableNet(numbers=2, levels=[], outputs=1, dim=8), torch.randn(40, 2)
    few, all_rows = torch.arange(40) < 5, torch.ones(40, dtype=torch.bool)
    drawn = laplace_draws(net, x, torch.randn(40), "gaussian", rows=[few, all_rows]).outputs(net, x)
    spread = drawn.unflatten(0, (-1, 2)).std(0).mean((1, 2))
    assert spread[0] > spread[1] > 0


def test_members_without_hidden_layers_keep_their_weights():
    torch.manual_seed(0)
    net = TableNet(
        numbers=2, levels=[], outputs=1, dim=8, sigmas=[0.1, 0.1, 0.7], dropout=[0.0] * 3, linear=[False, True, False]
    )
    x = torch.randn(40, 2)
    drawn = laplace_draws(net, x, torch.randn(40), "gaussian").outputs(net, x)
    spread = drawn.unflatten(0, (-1, 3)).std(0).mean((1, 2))
    assert spread[1] == 0
    assert spread[0] > 0 < spread[2]
    plain = TableNet(numbers=2, levels=[], outputs=1, dim=8, sigmas=[0.1, 0.7], dropout=[0.0] * 2)
    weights = {name: v[[0, 2]] if v.shape[:1] == (3,) else v for name, v in net.state_dict().items()}
    plain.load_state_dict(weights)
    torch.manual_seed(1)
    alone = laplace_draws(plain, x, torch.randn(40), "gaussian")
    torch.manual_seed(1)
    beside = laplace_draws(net, x, torch.randn(40), "gaussian")
    torch.testing.assert_close(
        alone.outputs(plain, x), beside.outputs(net, x).unflatten(0, (-1, 3))[:, [0, 2]].flatten(0, 1)
    )


@pytest.mark.parametrize("method", ["laplace", "swag"])
def test_runs_keep_draws_and_are_less_sure_far_away(method, tmp_path):
    random = np.random.default_rng(0)
    frame = {"x": random.uniform(-1, 1, 120), "z": random.normal(size=120)}
    frame["y"] = np.sin(3 * frame["x"]) + random.normal(0, 0.1, 120)
    run = wonderland.fit(frame, "y", uncertainty=method, steps=60, leaderboard="none", out=tmp_path / "run")
    new = {"x": [0.0, 6.0], "z": [0.0, 0.0]}
    table = wonderland.load(tmp_path / "run").predict(new)
    assert table.equals(run.predict(new))
    assert table["epistemic"][1] > 2 * table["epistemic"][0] > 0
    assert table["aleatoric"][0] == table["aleatoric"][1] > 0
    alone = wonderland.load(tmp_path / "run").predict({"x": [0.0], "z": [0.0]})
    np.testing.assert_allclose(alone["aleatoric"], table["aleatoric"][:1])
    (tmp_path / "run" / "posterior.safetensors").unlink()
    with pytest.raises(
        WonderlandError, match=r"has no posterior\.safetensors, from which its uncertainty is computed: fit it"
    ):
        wonderland.load(tmp_path / "run").predict(new)


def test_sentences(tmp_path):
    assert Training(uncertainty="swag").uncertainty == "swag"
    with pytest.raises(
        WonderlandError, match=r"posterior\.safetensors does not hold draws of the weights of this model\."
    ):
        WeightDraws({"weight": torch.zeros(3, 2, 2)}).check(nn.Linear(2, 1))
    with pytest.raises(WonderlandError, match=r"ends in a linear layer: choose dropout or swag\."):
        laplace_draws(nn.Sequential(nn.Linear(2, 1), nn.Tanh()), torch.zeros(3, 2), torch.zeros(3), "gaussian")
    with pytest.raises(
        WonderlandError, match=r"uncertainty laplace is for networks, and models\.GaussianProcess is fitted"
    ):
        wonderland.fit("iris", model="gp", uncertainty="laplace", out=tmp_path / "gp")
