"""Wrappers of gymnasium environments: observations as vectors of float32, failures as sentences."""

import importlib
from typing import Any

import numpy as np

from wonderland.core import WonderlandError
from wonderland.rl import environment

gym = environment.gymnasium()
Record = importlib.import_module("gymnasium.utils").RecordConstructorArgs
LARGEST = 1 << 16


class Guarded(gym.Wrapper, Record):
    """An environment whose crashes, infinite rewards and observations raise a `WonderlandError`.

    >>> env = Guarded(gym.make("CartPole-v1"))
    >>> env.reset(seed=0)[0].shape
    (4,)
    """

    def __init__(self, env: Any):
        Record.__init__(self)
        super().__init__(env)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """The first observation of an episode."""
        try:
            observation, info = self.env.reset(seed=seed, options=options)
        except Exception as error:
            raise WonderlandError(
                f"{environment.title(self.env)} fails at its reset: {environment.said(error)}"
            ) from error
        return environment.check_observation(self.env, observation), info

    def step(self, action: Any) -> Any:
        """One step, checked."""
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except Exception as error:
            raise WonderlandError(
                f"{environment.title(self.env)} fails at action {action}: {environment.said(error)}"
            ) from error
        if not np.isfinite(float(reward)):
            raise WonderlandError(
                f"{environment.title(self.env)} gives a reward of {reward}, and nothing can be learned from that."
            )
        return environment.check_observation(self.env, observation), reward, terminated, truncated, info


class Flat(gym.ObservationWrapper, Record):
    """Observations of any space as one vector of float32: numbers as they are, choices one-hot.

    >>> Flat(gym.make("FrozenLake-v1")).reset(seed=0)[0].shape
    (16,)
    """

    def __init__(self, env: Any):
        Record.__init__(self)
        super().__init__(env)
        space = env.observation_space
        try:
            size = gym.spaces.flatdim(space)
            flat = gym.spaces.flatten_space(space)
        except (NotImplementedError, ValueError) as error:
            raise WonderlandError(
                f"{environment.title(env)} has observations of the space {str(space)[:80]}, which is no vector of a fixed size."
            ) from error
        if size > LARGEST:
            raise WonderlandError(
                f"{environment.title(env)} has observations of {size:,} numbers; at most {LARGEST:,} are read."
            )
        self.observation_space = gym.spaces.Box(
            flat.low.astype(np.float32), flat.high.astype(np.float32), (size,), np.float32
        )

    def observation(self, observation: Any) -> np.ndarray:
        """One observation as a vector."""
        return gym.spaces.flatten(self.env.observation_space, observation).astype(np.float32)


class Unit(gym.ActionWrapper, Record):
    """Actions of a box given in [-1, 1], whatever its bounds."""

    def __init__(self, env: Any):
        Record.__init__(self)
        super().__init__(env)
        box = env.action_space
        self.middle, self.half = (box.high + box.low) / 2, (box.high - box.low) / 2
        self.action_space = gym.spaces.Box(-1.0, 1.0, box.shape, box.dtype)

    def action(self, action: np.ndarray) -> np.ndarray:
        """The action within the bounds of the environment."""
        return (self.middle + self.half * np.clip(action, -1, 1)).astype(self.env.action_space.dtype)


def prepared(env: Any) -> Any:
    """An environment as policies take it: vectors in, numbered actions or vectors in [-1, 1] out."""
    space, box = env.observation_space, env.action_space
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1 or space.dtype != np.float32:
        env = Flat(env)
    if isinstance(box, gym.spaces.Discrete):
        if int(box.start):
            raise WonderlandError(
                f"{environment.title(env)} counts its actions from {box.start}; they must start at 0."
            )
        return env
    if (
        isinstance(box, gym.spaces.Box)
        and len(box.shape) == 1
        and np.isfinite(box.low).all()
        and np.isfinite(box.high).all()
    ):
        return Unit(env)
    raise WonderlandError(
        f"{environment.title(env)} has actions of the space {str(box)[:80]}: policies choose among numbered actions, or give a "
        "vector within finite bounds."
    )
