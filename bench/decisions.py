"""Steps per second of PPO on CartPole beside stable-baselines3 with the same settings.

python -m bench.decisions            # needs stable-baselines3

Equality of gradients with those of a recorded graph is asserted by tests/rl/test_written_gradients.py; here both sides have to improve.
"""

import sys

import torch

from bench.race import HEADER, race, setting
from wonderland.core import Spec
from wonderland.core.recipe import Recipe
from wonderland.optim import FusedAdamW
from wonderland.rl import PPO, ActorCritic, maker
from wonderland.rl.on_policy import Turn

STEPS = 2048


class Ours:
    """PPO as `rl.control` runs it: each call takes 2,048 steps and learns from them."""

    def __init__(self, envs: int, epochs: int, batch: int):
        self.make = maker("CartPole-v1")
        torch.manual_seed(0)
        learner = PPO.spec(envs=envs, horizon=STEPS // envs, epochs=epochs)
        model = ActorCritic.spec(features=4, actions=2)
        optimizer = FusedAdamW.spec(weight_decay=0.0, eps=1e-5)
        recipe = Recipe(
            model, Spec("optim.constant"), learner, optimizer, Spec("optim.constant"), 1000, batch, 3e-4, clip=0.5
        )
        self.learner = learner.build(recipe=recipe, task=None)
        self.state = self.learner.start(model.build())
        self.returns: list[float] = []

    def __call__(self) -> None:
        told = self.learner.step(self.state, Turn(self.state.step, self.make))
        self.state.step += 1
        self.returns.append(told.get("return", 0.0))


class Theirs:
    """Stable-baselines3's PPO with the same steps, epochs and batches."""

    def __init__(self, envs: int, epochs: int, batch: int):
        from stable_baselines3 import PPO as Peer  # pyright: ignore[reportMissingImports]
        from stable_baselines3.common.env_util import make_vec_env  # pyright: ignore[reportMissingImports]

        env = make_vec_env("CartPole-v1", n_envs=envs, seed=0)
        self.peer = Peer(
            "MlpPolicy", env, n_steps=STEPS // envs, batch_size=batch, n_epochs=epochs, learning_rate=3e-4, device="cpu"
        )
        self.peer._setup_learn(10**9)  # pyright: ignore
        self.returns: list[float] = []

    def __call__(self) -> None:
        peer = self.peer
        peer.collect_rollouts(peer.env, peer._init_callback(None), peer.rollout_buffer, n_rollout_steps=peer.n_steps)
        peer.train()
        done = [each["r"] for each in peer.ep_info_buffer]
        self.returns.append(sum(done) / max(1, len(done)))


def main(rounds: int = 8) -> None:
    print(setting(1, True, rounds))
    print(HEADER)
    for words, envs, epochs, batch in (
        ("1 environment, 10 epochs, batch 64", 1, 10, 64),
        ("8 environments, 10 epochs, batch 64", 8, 10, 64),
        ("8 environments, 20 epochs, batch 256", 8, 20, 256),
    ):
        ours, theirs = Ours(envs, epochs, batch), Theirs(envs, epochs, batch)
        race(words, ours, theirs, rounds)
        assert ours.returns[-1] > ours.returns[0], "ours does not improve"
        assert theirs.returns[-1] > theirs.returns[0], "theirs does not improve"
        print(f"{'':4}return of the last steps: ours {ours.returns[-1]:.0f}, theirs {theirs.returns[-1]:.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
