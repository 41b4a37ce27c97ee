"""Gradients that are written out equal those of a recorded graph, for every objective, kind of action and depth."""

import math

import pytest
import torch

from wonderland.rl import A2C, PPO, ActorCritic
from wonderland.rl.on_policy import clip_flat, log_probability
from wonderland.rl.written_gradients import WrittenGradients


def given(model, n=13):
    x, gain, returns = torch.randn(n, model.features), torch.randn(n), torch.randn(n)
    actions = torch.randn(n, model.actions) if model.continuous else torch.randint(model.actions, (n,))
    with torch.no_grad():
        old = log_probability(model, model.actor(x), actions)[0] + 0.3 * torch.randn(n)
    return x, actions, old, gain, returns


def objective_of(learner, near=0.2):
    """The objective of a learner as its paper writes it."""
    if learner is A2C:
        return lambda log, old, gain: -(log * gain).mean()

    def clipped(log, old, gain):
        ratio = (log - old).exp()
        return -torch.minimum(ratio * gain, ratio.clamp(1 - near, 1 + near) * gain).mean()

    return clipped


@pytest.mark.parametrize("learner", [A2C, PPO])
@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("depth", [0, 2])
def test_they_equal_those_of_a_graph(learner, continuous, depth):
    torch.manual_seed(0)
    model = ActorCritic(features=3, actions=2, continuous=continuous, width=5, depth=depth)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.5)
    rows = given(model)
    x, actions, old, gain, returns = rows
    log, entropy = log_probability(model, model.actor(x), actions)
    loss = objective_of(learner)(log, old, gain) + 0.5 * (model.critic(x)[:, 0] - returns).square().mean()
    (loss - 0.1 * entropy).backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    part = learner.__new__(learner)
    part.near, part.value, part.entropy = 0.2, 0.5, 0.1
    assert WrittenGradients.fits(model)
    written = WrittenGradients(model)
    measured, spread = written(*rows, part.objective, value=0.5, entropy=0.1)
    assert measured.item() == pytest.approx((loss - 0.1 * entropy).item(), abs=1e-5)
    assert spread.item() == pytest.approx(entropy.item(), abs=1e-5)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-5)
    model.zero_grad()
    part.recorded(model, *rows)[0].backward()
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-5)


def test_the_norm_of_the_buffer_is_that_of_the_parameters():
    model = ActorCritic(features=2, actions=2, width=3)
    written = WrittenGradients(model)
    written.flat.copy_(torch.randn_like(written.flat))
    before = torch.nn.utils.clip_grad_norm_(model.parameters(), math.inf).item()
    assert before == pytest.approx(written.flat.norm().item(), rel=1e-5)
    clip_flat(written.flat, before / 2)
    assert written.flat.norm().item() == pytest.approx(before / 2, rel=1e-4)
    clip_flat(written.flat, None)


def test_other_models_take_the_graph():
    class Own(ActorCritic):
        pass

    model = ActorCritic(features=2, actions=2)
    assert not WrittenGradients.fits(Own(features=2, actions=2))
    assert not WrittenGradients.fits(ActorCritic(features=2, actions=2).double())
    model.actor[0].register_forward_hook(lambda *given: None)
    assert not WrittenGradients.fits(model)
