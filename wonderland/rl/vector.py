"""Several environments side by side, whose every episode is a function of its seed and its actions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from wonderland.core import mix
from wonderland.rl import environment
from wonderland.rl.environment import SEEDS

LIMIT = 10_000  # steps after which an episode without an end is cut


@dataclass(frozen=True)
class Moment:
    """What one step of all environments gave: rewards (n,), who ended and who was cut (n,), and the last observations of those cut."""

    rewards: np.ndarray
    ended: np.ndarray
    cut: np.ndarray
    last: dict[int, np.ndarray]


class Environments:
    """Environments that restart by themselves, each episode with a seed of its own.

    The seed of an episode is mixed from (seed, environment, episode). A checkpoint therefore keeps numbers only: which episode,
    and the actions since its start. `bind` resets with that seed and repeats the actions; where that does not lead to the same
    observation, the environment is not deterministic: `exact` is False, and it starts a new episode.
    """

    def __init__(self, count: int, seed: int):
        self.count, self.seed, self.exact = count, seed, True
        self.episode = [0] * count
        self.actions: list[list[Any]] = [[] for _ in range(count)]
        self.total = [0.0] * count
        self.finished: list[float] = []
        self.steps = 0
        self.observations: np.ndarray | None = None
        self.envs: list[Any] = []

    def bind(self, make: Callable[[], Any]) -> None:
        """Make the environments, or bring new ones to where those of a checkpoint stood."""
        if self.envs:
            return
        self.envs = [make() for _ in range(self.count)]
        continued, actions = self.observations, self.actions
        self.actions, self.total = [[] for _ in range(self.count)], [0.0] * self.count
        self.observations = np.stack([self._start(i) for i in range(self.count)]).astype(np.float32)
        if continued is None:
            return
        for i, taken in enumerate(actions):
            for action in taken:
                observation, reward, *_ = environment.step(self.envs[i], action)
                self.observations[i] = observation
                self.total[i] += reward
            self.actions[i] = list(taken)
            if not np.array_equal(self.observations[i], continued[i]):
                self.exact = False
                self.episode[i] += 1
                self.observations[i] = self._start(i)

    def _start(self, i: int) -> np.ndarray:
        self.actions[i], self.total[i] = [], 0.0
        return environment.reset(self.envs[i], mix(self.seed, i, self.episode[i]) % SEEDS)

    def restart(self) -> None:
        """A new episode everywhere."""
        assert self.observations is not None
        for i in range(self.count):
            if self.actions[i]:
                self.episode[i] += 1
                self.observations[i] = self._start(i)

    def step(self, actions: np.ndarray) -> Moment:
        """Act everywhere; `observations` are those to act on next."""
        assert self.observations is not None
        rewards, ended, cut = np.zeros(self.count, np.float32), np.zeros(self.count, bool), np.zeros(self.count, bool)
        last: dict[int, np.ndarray] = {}
        each = actions.tolist() if actions.ndim == 1 else actions
        for i, action in enumerate(each):
            observation, reward, terminated, truncated = environment.step(self.envs[i], action)
            self.actions[i].append(action)
            self.total[i] += reward
            rewards[i] = reward
            if terminated or truncated or len(self.actions[i]) >= LIMIT:
                ended[i], cut[i] = terminated, not terminated
                if not terminated:
                    last[i] = observation
                self.finished.append(self.total[i])
                self.episode[i] += 1
                observation = self._start(i)
            self.observations[i] = observation
        self.steps += self.count
        return Moment(rewards, ended, cut, last)

    def returns(self) -> list[float]:
        """The returns of episodes that ended since the last call."""
        finished, self.finished = self.finished, []
        return finished

    def state_dict(self) -> dict[str, Any]:
        """Numbers only: episodes, actions since their start, and the observations they led to."""
        return {
            "episode": list(self.episode),
            "actions": [torch.from_numpy(np.asarray(taken)) for taken in self.actions],
            "observations": None if self.observations is None else torch.from_numpy(self.observations.copy()),
            "finished": list(self.finished),
            "steps": self.steps,
            "seed": self.seed,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Stand where a checkpoint stood, once `bind` is called."""
        self.episode, self.finished, self.steps = list(saved["episode"]), list(saved["finished"]), saved["steps"]
        self.seed, self.envs = saved["seed"], []
        taken = [actions.numpy() for actions in saved["actions"]]
        self.actions = [values.tolist() if values.ndim == 1 else list(values) for values in taken]
        observations = saved["observations"]
        self.observations = None if observations is None else observations.numpy().copy()
