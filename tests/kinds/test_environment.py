"""Environments as a kind of data: fitted, cut, resumed, evaluated like any other."""

import json

import gymnasium
import numpy as np
import pandas as pd
import pytest

import wonderland
from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from wonderland import rl
from wonderland.core import WonderlandError
from wonderland.kinds.environment.world import World


class TestEnvironment(Battery):
    kind = "environment"
    bounded = False
    options = {"episodes": 4, "environments": 2, "horizon": 16}
    learner = rl.PPO

    def make(self, folder):
        return "gym:CartPole-v1", "gym:CartPole-v1"


class Corridor(gymnasium.Env):
    """Walk right to earn."""

    observation_space = gymnasium.spaces.Box(-100, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    fault = ""

    def reset(self, *, seed=None, options=None):
        self.place = 0.0
        return np.array([self.place], np.float32), {}

    def step(self, action):
        if self.fault == "crash":
            raise RuntimeError("the motor burned")
        self.place += 2 * action - 1
        reward = float("inf") if self.fault == "reward" else float(action)
        return np.array([self.place % 50], np.float32), reward, False, False, {}


class Crash(Corridor):
    fault = "crash"


class Rich(Corridor):
    fault = "reward"


class Chance(Corridor):
    def reset(self, *, seed=None, options=None):
        super().reset()
        self.place = float(np.random.default_rng().random())
        return np.array([self.place], np.float32), {}


HERE = "tests.kinds.test_environment"


def test_an_own_environment_without_an_end_is_learned_and_loaded_without_importing_it(tmp_path):
    made = wonderland.fit(
        f"{HERE}:Corridor", out=tmp_path / "run", steps=3, limit=20, episodes=3, environments=2, threads=1
    )
    assert made.config["source"]["origin"] == {"own": f"{HERE}:Corridor"}
    assert made.evaluate(f"{HERE}:Corridor")["metrics"]["length"] == 20
    with pytest.raises(WonderlandError, match="was fitted from data in memory"):
        wonderland.fit(resume=tmp_path / "run")
    table = wonderland.load(tmp_path / "run").predict(pd.DataFrame({"place": [0.0, 1.0]}))
    assert list(table) == ["prediction", "p(0)", "p(1)"]
    assert "draws no pictures" in (tmp_path / "run/report.html").read_text()


def test_what_an_environment_does_not_have_is_noticed():
    assert "not deterministic" in [finding.kind for finding in World(f"{HERE}:Chance").findings]
    world = World(f"{HERE}:Corridor")
    assert [finding.text for finding in world.findings] == [
        f"No episode of {HERE}:Corridor ended within 200 random steps, and it has no limit: episodes are cut after 1,000 steps (--limit)."
    ]


def test_continuous_actions_and_other_learners(tmp_path):
    made = wonderland.fit(
        "gym:Pendulum-v1", out=tmp_path / "p", steps=1, episodes=2, environments=2, horizon=16, threads=1
    )
    assert made.predict(pd.DataFrame(np.zeros((2, 3)), columns=list("abc"))).shape == (2, 1)
    dqn = wonderland.fit("gym:CartPole-v1", out=tmp_path / "d", steps=1, episodes=2, learner="dqn", threads=1)
    assert dqn.metrics["return"] > 0
    page = (tmp_path / "d/report.html").read_text()
    assert "data:image/gif;base64," in page
    assert 'id="episode"' in page


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        ("gym:CartPol-v1", {}, "There is no environment 'CartPol-v1'. Did you mean 'CartPole-v1'"),
        ("gym:os:system", {}, "'gym:os:system' names no environment: say gym:NAME, or module:Class for your own."),
        ("nowhere:Env", {}, "nowhere:Env cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("json:dumps", {}, "json:dumps cannot be made: TypeError: dumps() missing 1 required positional argument: 'obj'"),
        ("collections:Counter", {}, "collections:Counter is no gymnasium environment: it has no reset."),
        (f"{HERE}:Crash", {}, "Crash fails at action 1: RuntimeError: the motor burned"),
        (f"{HERE}:Rich", {}, "Rich gives a reward of inf, and nothing can be learned from that."),
        ("gym:CartPole-v1", {"lr": "auto"}, "lr auto is for losses of examples, and rl.PPO has none: give a number."),
        ("gym:CartPole-v1", {"learner": "reinforce", "horizon": 3}, "horizon is not for reinforce, which plays whole episodes: leave it out."),
        ("gym:Pendulum-v1", {"learner": "dqn"}, "DQN chooses among numbered actions, and these are vectors: use PPO."),
        ("gym:CartPole-v1", {"model": "TextCNN(vocab=3)"}, None),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_told(source, options, sentence, tmp_path):
    with pytest.raises(WonderlandError) as told:
        wonderland.fit(source, out=tmp_path / "run", steps=1, episodes=2, environments=2, **options)
    if sentence:
        assert str(told.value).startswith(sentence) if "CartPol-" in source else str(told.value) == sentence


def test_a_policy_is_evaluated_in_its_own_environment_only(tmp_path):
    made = wonderland.fit(
        "gym:CartPole-v1", out=tmp_path / "run", steps=1, episodes=2, environments=2, horizon=8, threads=1
    )
    for source, sentence in (
        ("gym:Acrobot-v1", "Acrobot-v1 has 6 observed numbers and 3 actions, and this policy was made for 4 and 2."),
        (
            pd.DataFrame({"a": [1.0]}),
            "A policy is evaluated in an environment: say gym:NAME, or module:Class for your own.",
        ),
    ):
        with pytest.raises(WonderlandError) as told:
            made.evaluate(source)
        assert str(told.value).startswith(sentence) if "CartPol-" in source else str(told.value) == sentence
    with pytest.raises(WonderlandError, match="frame has 1 columns, and an observation of this policy has 4 numbers"):
        made.predict(pd.DataFrame({"a": [1.0]}))


def test_nothing_is_imported_by_a_name_found_in_a_run_folder(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("from pathlib import Path\nPath('sprung').touch()\nclass Env: pass\n")
    monkeypatch.chdir(tmp_path)
    fitted = wonderland.fit("gym:CartPole-v1", steps=1, episodes=2, environments=2, horizon=8, out=tmp_path / "run")
    path = fitted.folder / "config.json"
    for key in ("bundled", "path"):
        config = json.loads(path.read_text())
        config["source"]["origin"] = {key: "trap:Env"}
        path.write_text(json.dumps(config))
        with pytest.raises(
            WonderlandError, match="nothing is imported by a name found in a file: give your environment again"
        ):
            wonderland.fit(resume=fitted.folder)
    assert not (tmp_path / "sprung").exists()
