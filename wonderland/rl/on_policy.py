"""Policy gradients from fresh experience: REINFORCE with a baseline, A2C, PPO."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, mix, part
from wonderland.core.recipe import Recipe
from wonderland.rl.actor_critic import ActorCritic
from wonderland.rl.vector import Environments
from wonderland.rl.written_gradients import WrittenGradients
from wonderland.train.learner import Learner
from wonderland.train.state import State


@dataclass(frozen=True)
class Turn:
    """What a step of learning in environments is given: its number, and how an environment is made."""

    number: int
    make: Callable[[], Any]


def advantages(
    rewards: np.ndarray, values: np.ndarray, ended: np.ndarray, cut: np.ndarray, discount: float, trace: float
) -> np.ndarray:
    r"""Generalised advantage estimation.

    .. math:: \delta_t = r_t + \gamma v_{t+1} (1 - \text{end}_t) - v_t, \qquad
        A_t = \delta_t + \gamma \lambda (1 - \text{end}_t - \text{cut}_t) A_{t+1}

    The value of the state that a cut episode stopped in has to be in its reward already, discounted.

    Shapes: rewards, ended, cut (t, n), values (t + 1, n) -> (t, n). Paper: Schulman et al., 2016.

    >>> one = np.ones((2, 1))
    >>> advantages(one, np.zeros((3, 1)), one > 2, one > 2, 0.5, 1.0).tolist()
    [[1.5], [1.0]]
    """
    goes_on = 1.0 - (ended | cut)
    delta = rewards + discount * values[1:] * goes_on - values[:-1]
    result, later = np.empty_like(delta), np.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        later = delta[t] + discount * trace * goes_on[t] * later
        result[t] = later
    return result


def log_probability(model: ActorCritic, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """The log-probability of actions (n,), or densities of vectors (n, a), and the mean entropy."""
    if model.continuous:
        log_std = model.log_std
        z = (actions - outputs) * (-log_std).exp()
        constant = 0.5 * math.log(2 * math.pi)
        return (-0.5 * z.square() - log_std - constant).sum(-1), (log_std + constant + 0.5).sum()
    logs = outputs.log_softmax(-1)
    chosen = logs.gather(-1, actions[:, None])[:, 0]
    return chosen, -(logs.exp() * logs).sum(-1).mean()


def clip_flat(gradients: Tensor, largest: float | None) -> None:
    """Scale gradients in one buffer down to a norm."""
    if largest is not None:
        gradients.mul_((largest / (gradients.norm() + 1e-6)).clamp(max=1.0))


class OnPolicy(Learner):
    """Collect steps with the present policy, learn from them, and forget them.

    `envs` environments take `horizon` steps each. Learning rate, minibatches (`batch_size`), the largest norm of a gradient
    (`clip`) and the optimizer are those of the recipe. `scale` divides rewards by the deviation of the discounted return.
    """

    epochs = 1
    whole = False

    def __init__(
        self,
        recipe: Recipe,
        task: Any,
        *,
        envs: int = 8,
        horizon: int = 128,
        discount: float = 0.99,
        trace: float = 0.95,
        entropy: float = 0.0,
        value: float = 0.5,
        scale: bool = True,
    ):
        if envs < 1 or horizon < 1:
            raise WonderlandError("Learning needs at least one environment and one step.")
        self.recipe, self.task, self.envs, self.horizon = recipe, task, envs, horizon
        self.discount, self.trace, self.entropy, self.value, self.scale = discount, trace, entropy, value, scale
        self.schedule = recipe.schedule.build()

    def start(self, model: nn.Module) -> State:
        if not isinstance(model, ActorCritic):
            raise WonderlandError(f"{type(self).__name__} teaches an rl.ActorCritic, not a {type(model).__name__}.")
        seed = int(torch.randint(2**31 - 1, ()))
        optimizer = self.recipe.optimizer.build(params=model.parameters(), lr=self.recipe.lr)
        scale = {"running": [0.0] * self.envs, "mean": 0.0, "variance": 0.0, "count": 0}
        return State(model=model, optimizer=optimizer, envs=Environments(self.envs, seed), seed=seed, scale=scale)

    def model(self, state: State) -> nn.Module:
        return state.model

    def step(self, state: State, batch: Turn) -> dict[str, float]:
        state.envs.bind(batch.make)
        draw = np.random.Generator(np.random.Philox(mix(state.seed, state.step)))
        seen, actions, moments, weights = self.collect(state, draw)
        rewards = np.stack([moment.rewards for moment in moments]).astype(np.float64)
        ended, cut = (np.stack([getattr(moment, name) for moment in moments]) for name in ("ended", "cut"))
        rewards = self.scaled(state, rewards, ended | cut)
        model: ActorCritic = state.model
        flat = torch.from_numpy(seen[:-1].reshape(-1, seen.shape[-1]))
        with torch.no_grad():
            outputs = model(torch.from_numpy(seen.reshape(-1, seen.shape[-1])))
            values = outputs[:, -1].double().numpy().reshape(seen.shape[:2])
            chosen = torch.from_numpy(np.concatenate(actions))
            old, _ = log_probability(model, outputs[: len(flat), :-1], chosen)
            for t, moment in enumerate(moments):
                for i, last in moment.last.items():
                    rewards[t, i] += self.discount * float(model(torch.from_numpy(last)[None])[0, -1])
        gain = advantages(rewards, values, ended, cut, self.discount, self.trace)
        returns = torch.from_numpy((gain + values[:-1]).reshape(-1)).float()
        gains = torch.from_numpy(gain.reshape(-1)).float()
        if weights is not None:
            kept = torch.from_numpy(np.flatnonzero(weights.reshape(-1)))
            flat, chosen, old, gains, returns = (each[kept] for each in (flat, chosen, old, gains, returns))
        scalars = self.learn(state, draw, flat, chosen, old, gains, returns)
        model.observe(flat)
        finished = state.envs.returns()
        if finished:
            scalars["return"] = float(np.mean(finished))
        return scalars

    def collect(self, state: State, draw: np.random.Generator) -> tuple[np.ndarray, list[Any], list[Any], Any]:
        """Observations (t + 1, n, features), actions and moments of t steps, and which of them count."""
        envs, model = state.envs, state.model
        if self.whole:
            envs.restart()
        act = model.act()
        shape = (self.horizon, self.envs, model.actions)
        noise = draw.standard_normal(shape, np.float32) if model.continuous else -np.log(draw.exponential(size=shape))
        deviation = np.exp(model.log_std.detach().numpy()) if model.continuous else None
        seen, actions, moments = [envs.observations.copy()], [], []
        running, weights = np.ones(self.envs, bool), []
        while len(moments) < self.horizon or (self.whole and running.any()):
            t = len(moments)
            if t and t % self.horizon == 0:
                noise = (
                    draw.standard_normal(shape, np.float32)
                    if model.continuous
                    else -np.log(draw.exponential(size=shape))
                )
            outputs, chance = act(envs.observations), noise[t % self.horizon]
            action = outputs + deviation * chance if model.continuous else (outputs + chance).argmax(-1)
            moment = envs.step(action)
            weights.append(running.copy())
            running &= ~(moment.ended | moment.cut)
            actions.append(action)
            moments.append(moment)
            seen.append(envs.observations.copy())
            if self.whole and not running.any():
                break
        return np.stack(seen), actions, moments, np.stack(weights) if self.whole else None

    def scaled(self, state: State, rewards: np.ndarray, over: np.ndarray) -> np.ndarray:
        """Rewards over the deviation of the discounted return so far."""
        if not self.scale:
            return rewards
        record = state.scale
        running = np.array(record["running"])
        totals = np.empty_like(rewards)
        for t in range(len(rewards)):
            running = running * self.discount + rewards[t]
            totals[t] = running
            running = np.where(over[t], 0.0, running)
        count, total = totals.size, totals.size + record["count"]
        delta, share = totals.mean() - record["mean"], totals.size / total
        variance = record["variance"] * (1 - share) + totals.var() * share + delta**2 * share * (1 - share)
        record |= {
            "running": running.tolist(),
            "mean": float(record["mean"] + delta * share),
            "variance": float(variance),
            "count": int(record["count"] + count),
        }
        return rewards / math.sqrt(variance + 1e-8)

    def learn(
        self,
        state: State,
        draw: np.random.Generator,
        seen: Tensor,
        actions: Tensor,
        old: Tensor,
        gains: Tensor,
        returns: Tensor,
    ) -> dict[str, float]:
        """Some epochs of minibatches."""
        rate = self.recipe.lr * self.schedule(state.step, self.recipe.steps)
        for group in state.optimizer.param_groups:
            group["lr"] = rate
        model, size = state.model, min(self.recipe.batch_size, len(seen)) if self.epochs > 1 else len(seen)
        seen = model.normal(seen)
        written = WrittenGradients(model) if WrittenGradients.fits(model) else None
        parameters = [each for each in model.parameters() if each.requires_grad]
        total, entropies, updates = 0.0, 0.0, 0
        for _ in range(self.epochs):
            order = torch.from_numpy(draw.permutation(len(seen)))
            for rows in order.split(size):
                if len(rows) < 2:
                    continue
                gain = gains[rows]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                given = (seen[rows], actions[rows], old[rows], gain, returns[rows])
                if written is not None:
                    loss, entropy = written(*given, self.objective, value=self.value, entropy=self.entropy)
                    clip_flat(written.flat, self.recipe.clip)
                else:
                    loss, entropy = self.recorded(model, *given)
                    state.optimizer.zero_grad(set_to_none=True)
                    loss.backward()
                    if self.recipe.clip is not None:
                        nn.utils.clip_grad_norm_(parameters, self.recipe.clip, foreach=True)
                state.optimizer.step()
                total, entropies, updates = total + loss.detach(), entropies + entropy.detach(), updates + 1
        return {"loss": float(total) / max(1, updates), "entropy": float(entropies) / max(1, updates), "lr": rate}

    def recorded(
        self, model: ActorCritic, x: Tensor, actions: Tensor, old: Tensor, gain: Tensor, returns: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss and the entropy with a graph, for models other than `ActorCritic`; `WrittenGradients` has the same values."""
        log, entropy = log_probability(model, model.actor(x), actions)
        error = (model.critic(x)[:, 0] - returns).square().mean()
        losses, slope = self.objective(log.detach(), old, gain)
        policy = (
            losses.mean() + (slope * (log - log.detach())).mean()
        )  # the value of the losses, and the gradient of their slope
        return policy + self.value * error - self.entropy * entropy, entropy

    def objective(self, log: Tensor, old: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
        """What is made small for each row, minus the policy's gain, and its derivative by the log-probability."""
        return -log * gain, -gain


@part
class REINFORCE(OnPolicy):
    r"""The gradient of the log-probability times the return of whole episodes, less a learned baseline.

    .. math:: \nabla J = E\Big[\sum_t (G_t - v(s_t)) \nabla \log \pi(a_t \mid s_t)\Big]

    Each environment plays one episode to its end. Paper: Williams, 1992.
    """

    whole = True

    def __init__(
        self,
        recipe: Recipe,
        task: Any,
        *,
        envs: int = 8,
        discount: float = 0.99,
        entropy: float = 0.0,
        scale: bool = True,
    ):
        super().__init__(recipe, task, envs=envs, discount=discount, trace=1.0, entropy=entropy, scale=scale)


@part
class A2C(OnPolicy):
    r"""One gradient step with advantages from a few steps of many environments.

    .. math:: \nabla J = E[A_t \nabla \log \pi(a_t \mid s_t)]

    Paper: Mnih et al., 2016, without the threads.
    """

    def __init__(self, recipe: Recipe, task: Any, *, envs: int = 16, horizon: int = 8, discount: float = 0.99, trace: float = 0.95,
                 entropy: float = 0.01, value: float = 0.5, scale: bool = True):  # fmt: skip
        super().__init__(recipe, task, envs=envs, horizon=horizon, discount=discount, trace=trace, entropy=entropy, value=value, scale=scale)  # fmt: skip


@part
class PPO(OnPolicy):
    r"""Some epochs over the same steps, as long as the policy stays near the one that took them.

    .. math:: L = -E[\min(\rho A, \text{clip}(\rho, 1 - \epsilon, 1 + \epsilon) A)], \qquad
        \rho = \frac{\pi(a \mid s)}{\pi_\text{old}(a \mid s)}

    `near` is :math:`\epsilon`. Paper: Schulman et al., 2017.
    """

    def __init__(self, recipe: Recipe, task: Any, *, envs: int = 8, horizon: int = 128, discount: float = 0.99, trace: float = 0.95,
                 entropy: float = 0.0, value: float = 0.5, scale: bool = True, epochs: int = 10, near: float = 0.2):  # fmt: skip
        super().__init__(recipe, task, envs=envs, horizon=horizon, discount=discount, trace=trace, entropy=entropy, value=value, scale=scale)  # fmt: skip
        self.epochs, self.near = epochs, near

    def objective(self, log: Tensor, old: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
        ratio = (log - old).exp()
        plain, clipped = ratio * gain, ratio.clamp(1 - self.near, 1 + self.near) * gain
        return -torch.minimum(plain, clipped), torch.where(plain <= clipped, -plain, 0.0)
