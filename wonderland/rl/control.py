"""A policy for an environment, from Python: make, teach, play."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from wonderland.core import Spec, WonderlandError, mix
from wonderland.core.recipe import Recipe
from wonderland.optim import FusedAdamW
from wonderland.rl import environment
from wonderland.rl.actor_critic import ActorCritic
from wonderland.rl.dqn import DQN, QNetwork
from wonderland.rl.environment import SEEDS
from wonderland.rl.on_policy import PPO, Turn
from wonderland.rl.vector import LIMIT
from wonderland.train.loop import run
from wonderland.train.state import State

VALIDATION = 20  # episodes that decide which weights of a DQN are kept


@dataclass(frozen=True)
class Spaces:
    """The size of observations, how many actions there are, and whether they are vectors."""

    features: int
    actions: int
    continuous: bool


def maker(env: str | Callable[[], Any]) -> Callable[[], Any]:
    """How an environment is made, ready for policies: from the name of a registered one, or from a function."""

    def make() -> Any:
        from wonderland.rl.wrappers import prepared

        return prepared(environment.gymnasium().make(env) if isinstance(env, str) else env())

    return make


def spaces(env: Any) -> Spaces:
    """What a policy has to know of a prepared environment."""
    box = env.action_space
    continuous = not hasattr(box, "n")
    return Spaces(env.observation_space.shape[0], box.shape[0] if continuous else int(box.n), continuous)


def fitting_model(learner: Spec, known: Spaces) -> Spec:
    """The model that a learner teaches, of the sizes of an environment."""
    if learner.part is not DQN:
        return ActorCritic.spec(**vars(known))
    if known.continuous:
        raise WonderlandError("DQN chooses among numbered actions, and these are vectors: use PPO.")
    return QNetwork.spec(features=known.features, actions=known.actions)


def best_action(model: Any, outputs: np.ndarray) -> Any:
    """The action of largest probability, or the mean."""
    return outputs if model.continuous else int(outputs.argmax())


def play(model: Any, make: Callable[[], Any], episodes: int, *, seed: int = 0, longest: int = LIMIT) -> np.ndarray:
    """Returns of episodes with the best action of each moment: (episodes,). Each is a function of the seed and its number."""
    env, act, returns = make(), model.act(), np.zeros(episodes)
    for episode in range(episodes):
        observation, steps, over = environment.reset(env, mix(seed, 99, episode) % SEEDS), 0, False
        while not over:
            action = best_action(model, act(observation[None])[0])
            observation, reward, ended, cut = environment.step(env, action)
            returns[episode] += reward
            steps += 1
            over = ended or cut or steps >= longest
    env.close()
    return returns


def control(
    env: str | Callable[[], Any],
    learner: Spec | None = None,
    *,
    steps: int = 100,
    lr: float = 3e-4,
    batch_size: int = 256,
    model: Spec | None = None,
    seed: int = 0,
    clip: float = 0.5,
    folder: str | Path | None = None,
    schedule: str = "optim.constant",
    validation: int | None = None,
) -> nn.Module:
    """A policy for an environment: so many steps of a learner, PPO by default, each of which collects and learns.

    `env` is the name of a registered environment, or a function that makes one. With a `folder`, a run that was cut goes on
    exactly. Twenty times during training, so many episodes of `validation` are played, which begin with seeds of their own, and the
    weights with the best mean return are kept; 0 keeps the last ones. The default is 20 episodes for DQN, whose policy may be
    worse after an update than before, and 0 for the others.

    >>> policy = control("CartPole-v1", PPO.spec(envs=2, horizon=16), steps=1)
    >>> play(policy, maker("CartPole-v1"), 1).shape
    (1,)
    """
    make = maker(env)
    known = spaces(make())
    torch.manual_seed(seed)
    learner = learner or PPO.spec()
    model = model or fitting_model(learner, known)
    episodes = (VALIDATION if learner.part is DQN else 0) if validation is None else validation
    if episodes < 0:
        raise WonderlandError(f"validation is a number of episodes, 0 for none, not {validation}.")
    optimizer = FusedAdamW.spec(weight_decay=0.0, eps=1e-5)
    recipe = Recipe(model, Spec("optim.constant"), learner, optimizer, Spec(schedule), steps, batch_size, lr, clip=clip)
    built = learner.build(recipe=recipe, task=None)
    state = built.start(model.build())

    def evaluate(state: State) -> dict[str, float]:
        return {"validation/return": float(play(built.model(state), make, episodes, seed=mix(seed, 98)).mean())}

    run(
        built.step,
        state,
        lambda number: Turn(number, make),
        steps=steps,
        folder=folder,
        evaluate=evaluate if episodes else None,
        watch="validation/return" if episodes else None,
        larger_is_better=True,
    )
    return built.model(state)
