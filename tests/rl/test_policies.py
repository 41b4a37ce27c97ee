"""Policies by gradients: they learn, they repeat to the bit, and they go on to the bit after a kill."""

import json

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from wonderland import rl
from wonderland.core import Spec, WonderlandError, mix
from wonderland.core.recipe import Recipe
from wonderland.optim import FusedAdamW
from wonderland.rl.on_policy import log_probability
from wonderland.rl.wrappers import Flat, Guarded, Unit, prepared
from wonderland.train import loop
from wonderland.train.checkpoint import Checkpoints

SMALL = {
    "PPO": rl.PPO.spec(envs=2, horizon=16, epochs=2),
    "A2C": rl.A2C.spec(envs=2, horizon=4),
    "REINFORCE": rl.REINFORCE.spec(envs=2),
    "DQN": rl.DQN.spec(envs=2, horizon=8, updates=2, warmup=16, memory=100),
}


def weights(model) -> torch.Tensor:
    return torch.cat([value.double().reshape(-1) for value in model.state_dict().values()])


class Cut(Exception):
    pass


@pytest.mark.parametrize("name", SMALL)
def test_a_cut_training_goes_on_to_the_same_bits(name, tmp_path, monkeypatch):
    settings = {"steps": 6, "batch_size": 16, "seed": 3}
    whole = rl.control("CartPole-v1", SMALL[name], folder=tmp_path / "whole", **settings)
    assert torch.equal(weights(whole), weights(rl.control("CartPole-v1", SMALL[name], **settings)))
    monkeypatch.setattr(Checkpoints, "due", lambda self: True)
    check, calls = loop.guard.check, []

    def cut(*given):
        calls.append(1)
        if len(calls) == 4:
            raise Cut
        return check(*given)

    monkeypatch.setattr(loop.guard, "check", cut)
    with pytest.raises(Cut):
        rl.control("CartPole-v1", SMALL[name], folder=tmp_path / "cut", **settings)
    monkeypatch.setattr(loop.guard, "check", check)
    resumed = rl.control("CartPole-v1", SMALL[name], folder=tmp_path / "cut", **settings)
    assert torch.equal(weights(whole), weights(resumed))
    assert (tmp_path / "whole/metrics.jsonl").read_bytes() == (tmp_path / "cut/metrics.jsonl").read_bytes()


def test_ppo_balances_a_pole():
    policy = rl.control("CartPole-v1", rl.PPO.spec(envs=8, horizon=64, epochs=8), steps=30, lr=2e-3, batch_size=256)
    assert rl.play(policy, rl.maker("CartPole-v1"), 5).mean() > 150


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_ppo_solves_the_pole_on_every_seed(seed):
    policy = rl.control("CartPole-v1", rl.PPO.spec(), steps=100, lr=1e-3, schedule="optim.cosine", seed=seed)
    assert rl.play(policy, rl.maker("CartPole-v1"), 100, seed=seed).mean() >= 475


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_dqn_solves_the_pole_on_every_seed(seed):
    options = {"steps": 600, "lr": 1e-3, "batch_size": 128, "clip": 10.0, "schedule": "optim.cosine"}
    policy = rl.control("CartPole-v1", rl.DQN.spec(), seed=seed, **options)
    assert rl.play(policy, rl.maker("CartPole-v1"), 100, seed=seed).mean() >= 475


def test_the_weights_with_the_best_validation_return_are_kept(tmp_path):
    learner = rl.DQN.spec(envs=2, horizon=8, updates=4, warmup=16, memory=100)
    settings = {"steps": 20, "lr": 1e-2, "batch_size": 16, "seed": 1}
    last = rl.control("CartPole-v1", learner, validation=0, **settings)
    best = rl.control("CartPole-v1", learner, validation=3, folder=tmp_path, **settings)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    returns = [row["validation/return"] for row in rows]
    played = {
        name: rl.play(policy, rl.maker("CartPole-v1"), 3, seed=mix(1, 98)).mean()
        for name, policy in (("best", best), ("last", last))
    }
    assert played == {"best": max(returns), "last": returns[-1]}
    assert returns[-1] < max(returns)


def test_the_slow_copy_follows_the_weights_by_a_share_of_each_update():
    recipe = Recipe(
        rl.QNetwork.spec(features=4, actions=2),
        Spec("optim.constant"),
        SMALL["DQN"],
        FusedAdamW.spec(),
        Spec("optim.constant"),
        10,
        8,
        0.1,
    )
    learner = rl.DQN(recipe, None, envs=2, memory=64, updates=1, average=0.5)
    state = learner.start(rl.QNetwork(features=4, actions=2))
    state.step = 100
    before = weights(state.slow)
    draw = np.random.default_rng(0)
    state.replay.add(draw.normal(size=(32, 4)), np.zeros(32), np.ones(32), draw.normal(size=(32, 4)), np.full(32, 0.9))
    learner.update(state, draw)
    assert torch.allclose(weights(state.slow), (before + weights(state.model)) / 2)
    assert not torch.equal(before, weights(state.model))


@pytest.mark.slow
def test_ppo_swings_the_pendulum_up():
    learner = rl.PPO.spec(envs=8, horizon=256, epochs=10, discount=0.95)
    policy = rl.control("Pendulum-v1", learner, steps=150, lr=1e-3, schedule="optim.cosine")
    assert rl.play(policy, rl.maker("Pendulum-v1"), 100).mean() >= -250


@pytest.mark.slow
def test_ppo_lands_on_the_moon():
    pytest.importorskip("Box2D")
    learner = rl.PPO.spec(envs=16, horizon=512, discount=0.999, trace=0.98, entropy=0.01, epochs=4)
    policy = rl.control("LunarLander-v3", learner, steps=125, lr=5e-4, batch_size=256, schedule="optim.cosine")
    assert rl.play(policy, rl.maker("LunarLander-v3"), 100).mean() >= 200


def test_continuous_actions_learn_and_stay_within_bounds():
    policy = rl.control("Pendulum-v1", rl.PPO.spec(envs=2, horizon=32, epochs=2), steps=2, batch_size=32)
    assert np.isfinite(rl.play(policy, rl.maker("Pendulum-v1"), 1)).all()
    env = Unit(gymnasium.make("Pendulum-v1"))
    assert env.action(np.array([3.0])).tolist() == [2.0]


def test_log_probabilities_are_those_of_torch():
    for continuous in (False, True):
        model = rl.ActorCritic(features=3, actions=2, continuous=continuous)
        outputs = torch.randn(5, 2)
        if continuous:
            actions = torch.randn(5, 2)
            theirs = torch.distributions.Normal(outputs, model.log_std.exp())
            expected, entropy = theirs.log_prob(actions).sum(-1), theirs.entropy().sum(-1).mean()
        else:
            actions = torch.tensor([0, 1, 1, 0, 1])
            theirs = torch.distributions.Categorical(logits=outputs)
            expected, entropy = theirs.log_prob(actions), theirs.entropy().mean()
        log, mean = log_probability(model, outputs, actions)
        assert torch.allclose(log, expected, atol=1e-6)
        assert torch.allclose(mean, entropy, atol=1e-6)


def test_the_policy_of_arrays_is_the_network():
    model = rl.ActorCritic(features=3, actions=2)
    model.observe(torch.randn(50, 3) * 3 + 1)
    x = torch.randn(4, 3)
    assert np.allclose(model.act()(x.numpy()), model(x)[:, :2].detach().numpy(), atol=1e-5)


def test_running_mean_and_variance_are_those_of_all_observations():
    model, x = rl.ActorCritic(features=2, actions=2), torch.randn(90, 2) * 2 + 1
    for piece in x.split(30):
        model.observe(piece)
    assert torch.allclose(model.mean, x.mean(0), atol=1e-5)
    assert torch.allclose(model.variance, x.var(0, correction=0), atol=1e-4)


def test_advantages_against_the_sum_they_are():
    draw = np.random.default_rng(0)
    rewards, values = draw.normal(size=(6, 2)), draw.normal(size=(7, 2))
    ended = np.zeros((6, 2), bool)
    ended[2, 0] = True
    found = rl.advantages(rewards, values, ended, ~ended & False, 0.9, 0.8)
    for env in range(2):
        for t in range(6):
            total, factor = 0.0, 1.0
            for k in range(t, 6):
                goes_on = not ended[k, env]
                total += factor * (rewards[k, env] + 0.9 * values[k + 1, env] * goes_on - values[k, env])
                if not goes_on:
                    break
                factor *= 0.9 * 0.8
            assert found[t, env] == pytest.approx(total)


def test_replay_draws_by_surprise_and_corrects_for_it():
    replay = rl.Replay(8, features=1, priority=1.0)
    for _ in range(3):
        replay.add(np.zeros((4, 1)), np.arange(4), np.ones(4), np.ones((4, 1)), np.zeros(4))
    assert replay.count == 8
    assert replay.place == 4
    replay.surprise(torch.arange(8), torch.tensor([7.0, 1, 1, 1, 1, 1, 1, 1]))
    rows, importance = replay.draw(np.random.default_rng(0), 20_000)
    assert (rows == 0).float().mean() == pytest.approx(0.5, abs=0.02)
    weighted = torch.bincount(rows, importance.double(), 8)
    assert (weighted / weighted.sum()).tolist() == pytest.approx([1 / 8] * 8, abs=0.01)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1"])
def test_the_checker_of_gymnasium_passes(name):
    for wrapper in (Guarded, Flat, prepared):
        check_env(wrapper(gymnasium.make(name).unwrapped), skip_render_check=True)


class Odd(gymnasium.Env):
    """Observations that do not depend on the seed."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    draw = np.random.default_rng(0)

    def reset(self, *, seed=None, options=None):
        return self.draw.random(1, dtype=np.float32), {}

    def step(self, action):
        return self.draw.random(1, dtype=np.float32), 1.0, False, False, {}


def test_an_environment_that_is_not_deterministic_is_noticed():
    envs = rl.Environments(2, seed=0)
    envs.bind(Odd)
    for _ in range(3):
        envs.step(np.zeros(2, np.int64))
    saved = envs.state_dict()
    again = rl.Environments(2, seed=0)
    again.load_state_dict(saved)
    again.bind(Odd)
    assert not again.exact
    assert again.episode == [1, 1]


def test_environments_come_back_where_they_stood():
    make, envs = rl.maker("CartPole-v1"), rl.Environments(3, seed=1)
    envs.bind(make)
    for t in range(40):
        envs.step(np.array([t % 2, 0, 1]))
    again = rl.Environments(3, seed=0)
    again.load_state_dict(envs.state_dict())
    again.bind(make)
    assert again.exact
    for _ in range(30):
        for each in (envs, again):
            each.step(np.array([1, 0, 1]))
        assert np.array_equal(envs.observations, again.observations)


class Nested(Odd):
    observation_space = gymnasium.spaces.Sequence(gymnasium.spaces.Discrete(2))


class Paired(Odd):
    action_space = gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)])


class Many(Odd):
    action_space = gymnasium.spaces.MultiBinary(13)


class Taken(Odd):
    """Remembers the actions it is given, and gives its observations and rewards as lists and arrays."""

    def reset(self, *, seed=None, options=None):
        self.given = []
        return [0.5], {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.given.append(action)
        return [0.5], np.array([1.0]), len(self.given) >= 8, False, {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Discrete(3, start=5),
        gymnasium.spaces.MultiDiscrete([2, 3]),
        gymnasium.spaces.MultiBinary(3),
        gymnasium.spaces.Box(-1, 2, (2, 2), np.float32),
        gymnasium.spaces.Box(np.array([0, -np.inf], np.float32), np.array([1, np.inf], np.float32)),
    ],
)
def test_actions_of_other_spaces_are_numbered_or_made_a_vector(space):
    class World(Taken):
        action_space = space

    env = prepared(World())
    env.reset(seed=0)
    if isinstance(env.action_space, gymnasium.spaces.Discrete):
        for number in range(env.action_space.n):
            env.step(number)
        given = {str(action) for action in env.unwrapped.given}
        assert len(given) == env.action_space.n
    policy = rl.control(World, rl.PPO.spec(envs=2, horizon=16, epochs=1), steps=1, batch_size=16)
    assert rl.play(policy, rl.maker(World), 1).tolist() == [8.0]


class Wide(Odd):
    def reset(self, *, seed=None, options=None):
        return np.zeros(4, np.float32), {}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: prepared(Nested()), "Nested has observations of the space Sequence(Discrete(2), stack=False), which is no vector of a fixed size."),
        (lambda: prepared(Paired()), "Paired has actions of the space Tuple(Discrete(2), Discrete(2)): policies choose among numbered actions or combinations of them, or give numbers."),
        (lambda: prepared(Many()), "Many has 8,192 combinations of actions; at most 4,096 are numbered."),
        (lambda: rl.control(Wide, steps=1), "Wide gives observations of shape (4,), and its observation space says (1,)."),
        (lambda: rl.control("Pendulum-v1", rl.DQN.spec(), steps=1), "DQN chooses among numbered actions, and these are vectors: use PPO."),
        (lambda: rl.control("CartPole-v1", rl.DQN.spec(), model=rl.ActorCritic.spec(features=4, actions=2), steps=1), "DQN teaches an rl.QNetwork, which chooses among numbered actions, not a ActorCritic."),
        (lambda: rl.control("CartPole-v1", model=rl.QNetwork.spec(features=4, actions=2), steps=1), "PPO teaches an rl.ActorCritic, not a QNetwork."),
        (lambda: rl.control("CartPole-v1", rl.PPO.spec(envs=0), steps=1), "Learning needs at least one environment and one step."),
        (lambda: rl.control("CartPole-v1", rl.DQN.spec(average=1.0), steps=1), "average is the share of the slow copy that an update leaves, from 0 to below 1, not 1.0."),
        (lambda: rl.control("CartPole-v1", rl.DQN.spec(n_step=0), steps=1), "n_step is a number of steps, at least 1, not 0."),
        (lambda: rl.control("CartPole-v1", validation=-1, steps=1), "validation is a number of episodes, 0 for none, not -1."),
        (lambda: rl.ActorCritic(features=0, actions=1), "A policy needs at least one feature, one action and one unit."),
        (lambda: rl.Replay(0, 1), "A replay holds at least one transition."),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(call, sentence):
    with pytest.raises(WonderlandError) as told:
        call()
    assert str(told.value) == sentence
