"""A finite Markov decision process: states, actions, what follows, and what it is worth."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError

LARGEST = 200_000_000  # entries of a transition table: 1.6 GB


@dataclass(frozen=True)
class DecisionProcess:
    r"""States, actions, transition probabilities and expected rewards.

    .. math::
        p_{sas'} = P(s', \text{not ended} \mid s, a), \qquad r_{sa} = E[R \mid s, a]

    A row of `transitions` sums to at most 1; the rest is the probability that the episode ends with this action.

    Shapes: transitions (s, a, s), rewards (s, a) or (s, a, s) for one that depends on the next state, start (s,).
    Book: D2L 17.1.

    >>> stay_or_leave = DecisionProcess([[[1.0], [0.0]]], [[1.0, 3.0]])
    >>> stay_or_leave.states, stay_or_leave.actions, stay_or_leave.ends.tolist()
    (1, 2, [[0.0, 1.0]])
    """

    transitions: Tensor
    rewards: Tensor
    start: Tensor

    def __init__(self, transitions: Any, rewards: Any, start: Any = None):
        p, r = (torch.as_tensor(value, dtype=torch.float64) for value in (transitions, rewards))
        if p.dim() != 3 or p.shape[0] != p.shape[2] or 0 in p.shape:
            raise WonderlandError(f"Transitions have shape (states, actions, states), not {tuple(p.shape)}.")
        if tuple(r.shape) not in (tuple(p.shape[:2]), tuple(p.shape)):
            raise WonderlandError(
                f"Rewards have shape {tuple(p.shape[:2])} or {tuple(p.shape)} here, not {tuple(r.shape)}."
            )
        if not bool(torch.isfinite(p).all()) or bool((p < 0).any()) or bool((p.sum(-1) > 1 + 1e-9).any()):
            raise WonderlandError(
                "Transitions must be probabilities: none below 0, and those of one state and action sum to at most 1."
            )
        if not bool(torch.isfinite(r).all()):
            raise WonderlandError("A reward of this process is not a finite number.")
        if r.dim() == 3:
            r = (p * r).sum(-1)
        first = torch.eye(1, len(p), dtype=torch.float64)[0] if start is None else torch.as_tensor(start).double()
        if first.shape != (len(p),) or bool((first < 0).any()) or abs(float(first.sum()) - 1) > 1e-9:
            raise WonderlandError(f"start must be {len(p)} probabilities that sum to 1.")
        for name, value in (("transitions", p), ("rewards", r), ("start", first)):
            object.__setattr__(self, name, value)

    @property
    def states(self) -> int:
        """How many states there are."""
        return self.transitions.shape[0]

    @property
    def actions(self) -> int:
        """How many actions there are."""
        return self.transitions.shape[1]

    @property
    def ends(self) -> Tensor:
        """The probability that an episode ends with each action: (s, a)."""
        return (1 - self.transitions.sum(-1)).clamp_min(0)

    @staticmethod
    def from_gymnasium(env: Any) -> "DecisionProcess":
        """The table `P[s][a] = [(probability, next state, reward, ended)]` that gymnasium's toy-text environments carry."""
        inner = getattr(env, "unwrapped", env)
        table = getattr(inner, "P", None)
        if not isinstance(table, Mapping) or not table:
            raise WonderlandError(
                f"{type(inner).__name__} has no table P of transitions, so it is no finite process that can be read. "
                "Learn from its episodes instead: rl.q_learning(env)."
            )
        states, actions = len(table), len(table[0])
        if states * states * actions > LARGEST:
            raise WonderlandError(f"A process of {states:,} states and {actions} actions is too large for one table.")
        p = np.zeros((states, actions, states))
        r = np.zeros((states, actions))
        for state, choices in table.items():
            for action, outcomes in choices.items():
                for probability, following, reward, ended in outcomes:
                    r[state, action] += probability * float(reward)
                    p[state, action, following] += probability * (not ended)
        start = getattr(inner, "initial_state_distrib", None)
        return DecisionProcess(p, r, None if start is None else np.asarray(start, float) / np.sum(start))


def check_discount(discount: float) -> float:
    """The discount, if it is one."""
    if not isinstance(discount, int | float) or not 0 <= discount <= 1:
        raise WonderlandError(f"discount must be between 0 and 1, not {discount!r}.")
    return float(discount)
