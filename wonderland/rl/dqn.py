"""Deep Q-learning: a network of action values, taught from replayed experience."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError, mix, part
from wonderland.core.recipe import Recipe
from wonderland.optim import follow
from wonderland.rl.n_step import n_step_returns
from wonderland.rl.on_policy import Turn
from wonderland.rl.replay import Replay
from wonderland.rl.vector import Environments
from wonderland.train.learner import Learner
from wonderland.train.state import State


@part
class QNetwork(Part, nn.Module):
    r"""Action values; with `dueling`, as the value of the state and what each action adds to it.

    .. math:: q(x, a) = v(x) + A(x, a) - \tfrac{1}{n} \sum_b A(x, b)

    Shapes: x (b, features) -> (b, actions). Paper: Wang et al., 2016.

    >>> QNetwork(features=4, actions=2)(torch.randn(3, 4)).shape
    torch.Size([3, 2])
    """

    continuous = False

    def __init__(self, features: int, actions: int, *, width: int = 128, dueling: bool = True):
        super().__init__()
        self.actions, self.features, self.dueling = actions, features, dueling
        self.body = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, actions + dueling)

    def forward(self, x: Tensor) -> Tensor:
        out = self.head(self.body(x))
        if not self.dueling:
            return out
        gain = out[:, 1:]
        return out[:, :1] + gain - gain.mean(-1, keepdim=True)

    def act(self) -> Callable[[np.ndarray], np.ndarray]:
        """Action values as a function of arrays: (n, features) -> (n, actions)."""

        def forward(x: np.ndarray) -> np.ndarray:
            with torch.inference_mode():
                return self(torch.from_numpy(np.asarray(x, np.float32))).numpy()

        return forward


@part
class DQN(Learner):
    r"""Q-learning with a network, a replay and a slow copy of the network for its targets.

    .. math:: y = R + \gamma^n (1 - \text{end}) \, q_\text{slow}(s', \arg\max_a q(s', a)), \qquad L = w \, \text{huber}(y - q(s, a))

    That is double Q-learning; `double=False` takes the maximum of the slow copy. The slow copy is a moving average of the weights:
    each update leaves the share `average` of it. R and s' are the discounted rewards of `n_step` steps and the observation after
    them, or of fewer steps at the end of an episode or of a `horizon`. `epsilon` falls from 1 over the first share `explore` of the
    steps. A step of the learner takes `horizon` steps in `envs` environments and learns `updates` times.
    Papers: Mnih et al., 2015; Lillicrap et al., 2016; van Hasselt et al., 2016; Schaul et al., 2016.
    """

    def __init__(self, recipe: Recipe, task: Any, *, envs: int = 4, horizon: int = 32, updates: int = 64, memory: int = 50_000,
                 discount: float = 0.99, epsilon: float = 0.05, explore: float = 0.3, double: bool = True, priority: float = 0.6,
                 average: float = 0.995, n_step: int = 5, warmup: int = 1000):  # fmt: skip
        if not 0 <= average < 1:
            raise WonderlandError(
                f"average is the share of the slow copy that an update leaves, from 0 to below 1, not {average!r}."
            )
        if n_step < 1:
            raise WonderlandError(f"n_step is a number of steps, at least 1, not {n_step!r}.")
        self.recipe, self.task, self.envs, self.horizon, self.updates = recipe, task, envs, horizon, updates
        self.memory, self.discount, self.epsilon, self.explore, self.double = memory, discount, epsilon, explore, double
        self.priority, self.average, self.n_step, self.warmup = priority, average, n_step, warmup
        self.schedule = recipe.schedule.build()

    def start(self, model: nn.Module) -> State:
        if not isinstance(model, QNetwork):
            raise WonderlandError(
                f"DQN teaches an rl.QNetwork, which chooses among numbered actions, not a {type(model).__name__}."
            )
        seed = int(torch.randint(2**31 - 1, ()))
        optimizer = self.recipe.optimizer.build(params=model.parameters(), lr=self.recipe.lr)
        replay = Replay(self.memory, model.features, priority=self.priority)
        return State(model=model, slow=copy.deepcopy(model), optimizer=optimizer, envs=Environments(self.envs, seed), replay=replay, seed=seed)  # fmt: skip

    def model(self, state: State) -> nn.Module:
        return state.model

    def step(self, state: State, batch: Turn) -> dict[str, float]:
        state.envs.bind(batch.make)
        draw = np.random.Generator(np.random.Philox(mix(state.seed, state.step)))
        done = state.step / max(1, self.recipe.steps)
        epsilon = max(self.epsilon, 1 - (1 - self.epsilon) * done / max(self.explore, 1e-9))
        envs, act = state.envs, state.model.act()
        steps: list[tuple[np.ndarray, ...]] = []
        for _ in range(self.horizon):
            seen = envs.observations.copy()
            action = act(seen).argmax(-1)
            random = draw.random(self.envs) < epsilon
            action = np.where(random, draw.integers(state.model.actions, size=self.envs), action)
            moment = envs.step(action)
            following = envs.observations.copy()
            for i, last in moment.last.items():
                following[i] = last
            steps.append((seen, action, moment.rewards, following, moment.ended, moment.cut))
        seen, action, rewards, following, ended, cut = (np.stack(values) for values in zip(*steps, strict=True))
        returns = n_step_returns(rewards, following, ended, cut, self.discount, self.n_step)
        for t in range(self.horizon):
            state.replay.add(seen[t], action[t], returns.rewards[t], returns.following[t], returns.factor[t])
        scalars = {"loss": 0.0, "epsilon": epsilon}
        if state.replay.count >= min(self.warmup, self.memory):
            rate = self.recipe.lr * self.schedule(state.step, self.recipe.steps)
            for group in state.optimizer.param_groups:
                group["lr"] = rate
            scalars["loss"] = float(np.mean([self.update(state, draw) for _ in range(self.updates)]))
        finished = envs.returns()
        if finished:
            scalars["return"] = float(np.mean(finished))
        return scalars

    def update(self, state: State, draw: np.random.Generator) -> float:
        """One gradient step from replayed transitions."""
        correct = 0.4 + 0.6 * state.step / max(1, self.recipe.steps)
        rows, weights = state.replay.draw(draw, self.recipe.batch_size, correct)
        seen, action, reward, following, factor = (state.replay.fields[name][rows] for name in ("seen", "action", "reward", "next", "factor"))  # fmt: skip
        with torch.no_grad():
            slow = state.slow(following)
            choice = (state.model(following) if self.double else slow).argmax(-1, keepdim=True)
            goal = reward + factor * slow.gather(1, choice)[:, 0]
        value = state.model(seen).gather(1, action[:, None])[:, 0]
        loss = (weights * nn.functional.smooth_l1_loss(value, goal, reduction="none")).mean()
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.recipe.clip is not None:
            nn.utils.clip_grad_norm_(state.model.parameters(), self.recipe.clip)
        state.optimizer.step()
        follow(state.slow, state.model, self.average, state.step * self.updates)
        state.replay.surprise(rows, (goal - value).detach())
        return loss.item()
