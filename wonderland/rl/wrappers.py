"""Wrappers of gymnasium environments: observations as vectors of float32, failures as sentences."""

import importlib
from typing import Any

import numpy as np

from wonderland.core import WonderlandError
from wonderland.rl import environment

gym = environment.gymnasium()
Record = importlib.import_module("gymnasium.utils").RecordConstructorArgs
LARGEST = 1 << 16
MOST_ACTIONS = 4096


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
        try:
            reward = environment.number(reward)
        except (TypeError, ValueError) as error:
            raise WonderlandError(
                f"{environment.title(self.env)} gives a reward of {str(reward)[:40]!r}, which is no number."
            ) from error
        if not np.isfinite(reward):
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


class Numbered(gym.ActionWrapper, Record):
    """Combinations of choices numbered from 0: several choices at once, switches, or one choice that counts from elsewhere.

    >>> Numbered(gym.make("FrozenLake-v1")).action_space
    Discrete(4)
    """

    def __init__(self, env: Any):
        Record.__init__(self)
        super().__init__(env)
        space = env.action_space
        self.first = np.asarray(getattr(space, "start", 0))
        self.counts = np.full(space.shape, 2) if isinstance(space, gym.spaces.MultiBinary) else np.asarray(
            space.n if isinstance(space, gym.spaces.Discrete) else space.nvec
        )  # fmt: skip
        count = int(np.prod(self.counts, dtype=np.float64))
        if count > MOST_ACTIONS:
            raise WonderlandError(
                f"{environment.title(env)} has {count:,} combinations of actions; at most {MOST_ACTIONS:,} are numbered."
            )
        self.action_space = gym.spaces.Discrete(count)

    def action(self, action: Any) -> Any:
        """The combination of this number, as the environment takes it."""
        space = self.env.action_space
        if isinstance(space, gym.spaces.Discrete):
            return int(action) + int(self.first)
        each = np.unravel_index(int(action), self.counts.ravel())
        return (np.asarray(each).reshape(self.counts.shape) + self.first).astype(space.dtype)


class Unit(gym.ActionWrapper, Record):
    """Actions of a box of any shape as a vector in [-1, 1]; where the box has no bound, the number as it is."""

    def __init__(self, env: Any):
        Record.__init__(self)
        super().__init__(env)
        box = env.action_space
        self.bounded = np.isfinite(box.low) & np.isfinite(box.high)
        low, high = np.where(self.bounded, box.low, -1.0), np.where(self.bounded, box.high, 1.0)
        self.middle, self.half = ((high + low) / 2).astype(box.dtype), ((high - low) / 2).astype(box.dtype)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (int(np.prod(box.shape)),), np.float32)

    def action(self, action: np.ndarray) -> np.ndarray:
        """The action within the bounds of the environment."""
        box = self.env.action_space
        action = np.asarray(action).reshape(box.shape)
        if not self.bounded.all():
            free = np.clip(action, box.low, box.high)
            return np.where(self.bounded, self.middle + self.half * np.clip(action, -1, 1), free).astype(box.dtype)
        return (self.middle + self.half * np.clip(action, -1, 1)).astype(box.dtype)


def prepared(env: Any) -> Any:
    """An environment as policies take it: vectors in, numbered actions or vectors in [-1, 1] out."""
    space, box = env.observation_space, env.action_space
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1 or space.dtype != np.float32:
        env = Flat(env)
    if isinstance(box, gym.spaces.Discrete) and not int(box.start):
        return env
    if isinstance(box, gym.spaces.Discrete | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary):
        return Numbered(env)
    if isinstance(box, gym.spaces.Box) and np.issubdtype(box.dtype, np.floating) and np.prod(box.shape) >= 1:
        return Unit(env)
    raise WonderlandError(
        f"{environment.title(env)} has actions of the space {str(box)[:80]}: policies choose among numbered actions or "
        "combinations of them, or give numbers."
    )
