"""An environment that fails in sentences: whatever a step gives is checked before anybody learns from it."""

import os
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, need

SEEDS = 2**31 - 1  # gymnasium's environments take seeds below this


def gymnasium() -> Any:
    """The gymnasium package, or how to get it."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it would greet on stdout
    return need("gymnasium", extra="rl", why="to learn from environments")


def title(env: Any) -> str:
    """What an environment is called."""
    spec = getattr(env, "spec", None)
    return str(getattr(spec, "id", None) or type(getattr(env, "unwrapped", env)).__name__)


def reset(env: Any, seed: int) -> Any:
    """The first observation of an episode whose chance depends on the seed alone."""
    try:
        observation, _ = env.reset(seed=seed % SEEDS)
    except WonderlandError:
        raise
    except Exception as error:
        raise WonderlandError(f"{title(env)} fails at its reset: {said(error)}") from error
    observation, shape = (
        check_observation(env, observation),
        getattr(getattr(env, "observation_space", None), "shape", None),
    )
    if shape is not None and np.shape(observation) != shape:
        raise WonderlandError(
            f"{title(env)} gives observations of shape {np.shape(observation)}, and its observation space says {shape}."
        )
    return observation


def step(env: Any, action: Any) -> tuple[Any, float, bool, bool]:
    """One step: observation, reward, terminated, truncated."""
    try:
        observation, reward, terminated, truncated, _ = env.step(action)
        reward = number(reward)
    except WonderlandError:
        raise
    except Exception as error:
        raise WonderlandError(f"{title(env)} fails at action {action}: {said(error)}") from error
    if not np.isfinite(reward):
        raise WonderlandError(f"{title(env)} gives a reward of {reward}, and nothing can be learned from that.")
    return check_observation(env, observation), reward, bool(terminated), bool(truncated)


def check_observation(env: Any, observation: Any) -> Any:
    """The observation, if all its numbers are finite; lists become arrays."""
    if isinstance(observation, list) and isinstance(getattr(env, "observation_space", None), gymnasium().spaces.Box):
        observation = np.asarray(observation, env.observation_space.dtype)
    if isinstance(observation, np.ndarray) and observation.dtype.kind == "f" and not np.isfinite(observation).all():
        raise WonderlandError(f"{title(env)} gives an observation that is not finite.")
    return observation


def number(reward: Any) -> float:
    """A reward as a number, also where an environment gives it as an array of one."""
    return float(reward.item() if isinstance(reward, np.ndarray) else reward)


def said(error: Exception) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}".rstrip(": ")
