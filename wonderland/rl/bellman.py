"""Bellman's equations as functions of values."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.rl.process import DecisionProcess


def action_values(process: DecisionProcess, values: Tensor, discount: float) -> Tensor:
    r"""What an action is worth, when `values` are what the next state is worth.

    .. math:: q_{sa} = r_{sa} + \gamma \sum_{s'} p_{sas'} v_{s'}

    Shapes: values (s,) -> (s, a).

    >>> process = DecisionProcess([[[1.0], [0.0]]], [[1.0, 3.0]])
    >>> action_values(process, torch.tensor([10.0]), 0.5).tolist()
    [[6.0, 3.0]]
    """
    return process.rewards + discount * (process.transitions @ values.double())


def optimality_operator(process: DecisionProcess, values: Tensor, discount: float) -> Tensor:
    r"""One sweep of Bellman's optimality equation, a contraction by the discount in the largest difference.

    .. math:: (T v)_s = \max_a q_{sa}(v)

    Shapes: values (s,) -> (s,). Book: D2L 17.2.
    """
    return action_values(process, values, discount).amax(-1)


def expectation_operator(process: DecisionProcess, policy: Tensor, values: Tensor, discount: float) -> Tensor:
    r"""One sweep of Bellman's equation for a policy.

    .. math:: (T_\pi v)_s = \sum_a \pi_{sa} q_{sa}(v)

    Shapes: policy (s, a) of probabilities or (s,) of actions, values (s,) -> (s,).
    """
    return (probabilities(process, policy) * action_values(process, values, discount)).sum(-1)


def greedy(q: Tensor) -> Tensor:
    """The best action of each state, the first among equals: (s, a) -> (s,). Values closer than 1e-12 count as equal."""
    best = q.amax(-1, keepdim=True)
    return (q >= best - 1e-12 * best.abs().clamp_min(1)).int().argmax(-1)


def probabilities(process: DecisionProcess, policy: Tensor) -> Tensor:
    """A policy as probabilities (s, a), from those or from one action for each state (s,)."""
    policy = torch.as_tensor(policy)
    if policy.dim() == 1 and len(policy) == process.states and not policy.is_floating_point():
        if bool((policy < 0).any()) or bool((policy >= process.actions).any()):
            raise WonderlandError(f"A policy names actions from 0 to {process.actions - 1}.")
        return torch.nn.functional.one_hot(policy.long(), process.actions).double()
    if tuple(policy.shape) != (process.states, process.actions):
        raise WonderlandError(
            f"A policy is one whole number for each of {process.states} states, or probabilities of shape "
            f"({process.states}, {process.actions}), not {tuple(policy.shape)}."
        )
    policy = policy.double()
    if bool((policy < 0).any()) or bool(((policy.sum(-1) - 1).abs() > 1e-6).any()):
        raise WonderlandError("The probabilities of a policy are not below 0 and sum to 1 in each state.")
    return policy
