"""Learning from episodes with a table of action values: Q-learning, SARSA, expected SARSA."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, mix
from wonderland.rl import environment
from wonderland.rl.bellman import greedy
from wonderland.rl.exploration import EpsilonGreedy, Exploration
from wonderland.rl.process import DecisionProcess, check_discount

LONGEST = 10_000


class Walk:
    """Episodes of a finite process, by the interface of gymnasium: `reset(seed=)` and `step(action)`."""

    def __init__(self, process: DecisionProcess):
        self.process, self.state = process, 0
        self.draw = np.random.default_rng(0)
        tables = process.transitions.numpy(), process.ends.numpy()
        self.chances = np.concatenate([tables[0], tables[1][..., None]], -1).cumsum(-1)

    def reset(self, *, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        """Start in a state drawn from `start`."""
        if seed is not None:
            self.draw = np.random.default_rng(seed)
        self.state = self._drawn(self.process.start.numpy().cumsum())
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Act; the reward is the expected one."""
        reward = float(self.process.rewards[self.state, action])
        following = self._drawn(self.chances[self.state, action])
        ended = following == self.process.states
        self.state = self.state if ended else following
        return self.state, reward, ended, False, {}

    def _drawn(self, cumulative: np.ndarray) -> int:
        return int(np.searchsorted(cumulative, self.draw.random() * cumulative[-1], side="right"))


@dataclass(frozen=True)
class Learned:
    """Action values (s, a), the greedy policy (s,), and the return and length of every episode."""

    action_values: Tensor
    policy: Tensor
    returns: np.ndarray
    lengths: np.ndarray


def q_learning(env: Any, **settings: Any) -> Learned:
    r"""Off-policy: the next state is worth its best action.

    .. math:: q_{sa} \leftarrow q_{sa} + \alpha \, (r + \gamma \, (1 - \text{end}) \max_{a'} q_{s'a'} - q_{sa})

    `env` is a gymnasium environment with numbered states and actions, or a DecisionProcess. Settings are those of `learn`.
    Book: D2L 17.3. Paper: Watkins and Dayan, 1992.

    >>> process = DecisionProcess([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]], [[0.0, 0.1], [1.0, 0.0]])
    >>> q_learning(process, episodes=200, rate=0.5, discount=0.9).policy.tolist()
    [0, 0]
    """
    return learn(env, "q", **settings)


def sarsa(env: Any, **settings: Any) -> Learned:
    r"""On-policy: the next state is worth the action that is taken there.

    .. math:: q_{sa} \leftarrow q_{sa} + \alpha \, (r + \gamma \, (1 - \text{end}) \, q_{s'a'} - q_{sa})

    Settings are those of `learn`. Paper: Rummery and Niranjan, 1994.
    """
    return learn(env, "sarsa", **settings)


def expected_sarsa(env: Any, **settings: Any) -> Learned:
    r"""On-policy, without the chance of the next action.

    .. math:: q_{sa} \leftarrow q_{sa} + \alpha \, (r + \gamma \, (1 - \text{end}) \sum_{a'} \pi_{s'a'} q_{s'a'} - q_{sa})

    Settings are those of `learn`. Paper: van Seijen et al., 2009.
    """
    return learn(env, "expected", **settings)


def learn(
    env: Any,
    target: str,
    *,
    episodes: int = 256,
    rate: float = 0.9,
    discount: float = 0.95,
    explore: Exploration | None = None,
    seed: int = 0,
    longest: int = LONGEST,
) -> Learned:
    """Episodes with one update a step.

    Args:
        target: "q", "sarsa" or "expected": what the next state is worth.
        episodes: how many; each is a function of the seed and its number.
        rate: the share of the difference that is learned at once.
        explore: which action to try (`EpsilonGreedy(0.9)` by default).
        longest: an episode is cut after so many steps; the state it is cut in counts as one that goes on.
    """
    check_discount(discount)
    if not 0 < rate <= 1:
        raise WonderlandError(f"rate must be above 0 and at most 1, not {rate!r}.")
    explore = EpsilonGreedy(0.9) if explore is None else explore
    env = Walk(env) if isinstance(env, DecisionProcess) else env
    states, actions = sizes(env)
    q, counts = np.zeros((states, actions)), np.zeros((states, actions), np.int64)
    returns, lengths = np.zeros(episodes), np.zeros(episodes, np.int64)

    for episode in range(episodes):
        draw = np.random.default_rng(mix(seed, episode))
        state = int(environment.reset(env, mix(seed, episode, 1)))
        chances = explore.probabilities(q[state], counts[state])
        action, steps, over = choice(draw, chances), 0, False
        while not over:
            counts[state, action] += 1
            following, reward, ended, truncated = environment.step(env, action)
            following, steps = int(following), steps + 1
            over = ended or truncated or steps >= longest
            chances = explore.probabilities(q[following], counts[following])
            taken = choice(draw, chances)
            returns[episode] += reward
            worth = 0.0
            if not ended:
                row = q[following]
                worth = row.max() if target == "q" else row[taken] if target == "sarsa" else float(chances @ row)
            q[state, action] += rate * (reward + discount * worth - q[state, action])
            state, action = following, taken
        lengths[episode] = steps
    values = torch.from_numpy(q)
    return Learned(values, greedy(values), returns, lengths)


def choice(draw: np.random.Generator, chances: np.ndarray) -> int:
    """One action by its probability."""
    return min(int(np.searchsorted(chances.cumsum(), draw.random(), side="right")), len(chances) - 1)


def sizes(env: Any) -> tuple[int, int]:
    """How many states and actions an environment has; one without a finite number of both is refused."""
    if isinstance(env, Walk):
        return env.process.states, env.process.actions
    spaces = env.observation_space, env.action_space
    if any(not hasattr(space, "n") or getattr(space, "start", 0) for space in spaces):
        raise WonderlandError(
            f"{environment.title(env)} has no finite number of states and actions, counted from 0, so there is no table to "
            "learn. Use a network: wonderland fit gym:NAME."
        )
    return int(spaces[0].n), int(spaces[1].n)
