"""An environment as a dataset: its spaces, a look at a few of its episodes, and whether they can be repeated."""

import functools
import hashlib
import importlib
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, mix, nearest
from wonderland.data.dataset import Dataset, Finding
from wonderland.rl import environment
from wonderland.rl.control import Spaces, spaces

REGISTERED = re.compile(r"gym:([A-Za-z0-9_./-]{1,100})")
OWN = re.compile(r"([A-Za-z_][\w.]{0,200}):([A-Za-z_]\w{0,100})")
PROBE = 200
CUT = 1000  # steps of an episode where the environment has no limit of its own


class World(Dataset):
    """An environment, by its name. An episode is one example: its number is the seed it begins with."""

    kind, noun, task = "environment", "episodes", "control"
    classes, y = None, None

    def __init__(self, source: str, *, episodes: int | None = None, limit: int | None = None, strict: bool = False):
        registered = REGISTERED.fullmatch(source)
        self.name = registered[1] if registered else source
        self.origin = {"bundled": source} if registered else {"own": source}
        self.factory = functools.partial(_registered, registered[1]) if registered else _own(source)
        self.limit, self.episodes = limit, episodes or 100
        self.findings: list[Finding] = []
        env = self.make()
        self.spaces: Spaces = spaces(env)
        self.low, self.high = (
            np.asarray(each, float) for each in (env.observation_space.low, env.observation_space.high)
        )
        self._look(env)
        env.close()

    def make(self, render: bool = False) -> Any:
        """The environment, ready for policies."""
        from wonderland.rl.wrappers import Guarded, prepared

        env = self.factory(**({"render_mode": "rgb_array"} if render else {}))
        for name in ("reset", "step", "observation_space", "action_space"):
            if not hasattr(env, name):
                raise WonderlandError(f"{self.name} is no gymnasium environment: it has no {name}.")
        env = prepared(Guarded(env))
        if self.limit is not None:
            env = environment.gymnasium().wrappers.TimeLimit(env, self.limit)
        return env

    def _look(self, env: Any) -> None:
        """Play a little, twice: the fingerprint is what was seen."""
        first, ended = self._probe(env)
        second, _ = self._probe(env)
        exact = all(np.array_equal(a, b) for a, b in zip(first, second, strict=False)) and len(first) == len(second)
        about = json.dumps([self.name, vars(self.spaces), self.limit, self.low.tolist(), self.high.tolist()])
        total = hashlib.sha256(about.encode())
        if exact:
            for moment in first:
                total.update(np.asarray(moment, np.float64).tobytes())
        else:
            self.findings.append(Finding(
                "not deterministic", self.name, 1,
                f"{self.name} gives other observations for the same seed and actions: a run that is cut goes on, but not to the same bits.",
            ))  # fmt: skip
        self.fingerprint = total.hexdigest()
        own_limit = getattr(getattr(env, "spec", None), "max_episode_steps", None)
        self.longest = self.limit or own_limit
        if not ended and self.limit is None and own_limit is None:
            self.limit = self.longest = CUT
            self.findings.append(Finding(
                "no end", self.name, 1,
                f"No episode of {self.name} ended within {PROBE} random steps, and it has no limit: episodes are cut after {CUT:,} steps (--limit).",
            ))  # fmt: skip

    def _probe(self, env: Any) -> tuple[list[np.ndarray], bool]:
        draw, ended = np.random.default_rng(0), False
        seen = [environment.reset(env, 0).copy()]
        for step in range(PROBE):
            action = (
                draw.uniform(-1, 1, self.spaces.actions)
                if self.spaces.continuous
                else int(draw.integers(self.spaces.actions))
            )
            observation, reward, over, cut = environment.step(env, action)
            seen.append(np.append(observation, reward))
            if over or cut:
                ended = True
                seen.append(environment.reset(env, step + 1).copy())
        return seen, ended

    def __len__(self) -> int:
        return self.episodes

    def summary(self) -> list[dict[str, Any]]:
        shown = [{"name": f"observation {i}", "kind": "number", "low": _bound(self.low[i]), "high": _bound(self.high[i])}
                 for i in range(min(32, self.spaces.features))]  # fmt: skip
        kind = "vector in [-1, 1]" if self.spaces.continuous else "one of"
        return [*shown, {"name": "action", "kind": f"{kind} {self.spaces.actions}", "low": "", "high": ""}]

    def headline(self) -> str:
        """The environment in one line."""
        actions = (
            f"actions of {self.spaces.actions} numbers" if self.spaces.continuous else f"{self.spaces.actions} actions"
        )
        return f"{self.name}: observations of {self.spaces.features} numbers, {actions}"

    def example(self, i: int) -> dict[str, Any]:
        """The first observation of an episode."""
        env = self.make()
        seen = environment.reset(env, episode_seed(i))
        env.close()
        return {f"observation {k}": float(value) for k, value in enumerate(seen[:32])}


class Observations(Dataset):
    """Rows of observations, to be told the action for each."""

    kind, noun, task = "environment", "observations", None
    classes, y = None, None

    def __init__(self, frame: pd.DataFrame, features: int, name: str):
        self.name, self.origin, self.findings, self.fingerprint = name, {}, [], ""
        numbers = frame.apply(pd.to_numeric, errors="coerce").to_numpy(np.float32)
        if numbers.shape[1] != features:
            raise WonderlandError(
                f"{name} has {numbers.shape[1]} columns, and an observation of this policy has {features} numbers."
            )
        if not np.isfinite(numbers).all():
            raise WonderlandError(
                f"{name} has cells that are no finite numbers, and a policy needs all of an observation."
            )
        self.x = np.ascontiguousarray(numbers).copy()

    def __len__(self) -> int:
        return len(self.x)

    def summary(self) -> list[dict[str, Any]]:
        return [{"name": f"observation {i}"} for i in range(self.x.shape[1])]

    def example(self, i: int) -> dict[str, Any]:
        return {f"observation {k}": float(value) for k, value in enumerate(self.x[i])}


def episode_seed(number: int) -> int:
    """The seed that a measured episode begins with, apart from those of training."""
    return mix(77, int(number)) % environment.SEEDS


def _bound(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1e30 else ""


def _registered(name: str, **more: Any) -> Any:
    gym = environment.gymnasium()
    try:
        return gym.make(name, **more)
    except gym.error.UnregisteredEnv:
        raise WonderlandError(
            f"There is no environment {name!r}.{nearest(name, [each for each in gym.registry if '/' not in each])}"
        ) from None
    except Exception as error:
        raise WonderlandError(f"{name} cannot be made: {environment.said(error)}") from error


def _own(source: str) -> Callable[..., Any]:
    """A user's own class, imported because the user named it in this call; names in files never get here."""
    match = OWN.fullmatch(source)
    if match is None:
        raise WonderlandError(f"{source[:100]!r} names no environment: say gym:NAME, or module:Class for your own.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        environment_class = getattr(importlib.import_module(match[1]), match[2])
    except (ImportError, AttributeError) as error:
        raise WonderlandError(f"{source} cannot be imported: {environment.said(error)}") from error

    def make(**more: Any) -> Any:
        try:
            return environment_class(**more)
        except Exception as error:
            raise WonderlandError(f"{source} cannot be made: {environment.said(error)}") from error

    return make
