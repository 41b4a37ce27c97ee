"""Planning in a known process: value iteration, policy iteration, evaluation of a policy."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.rl.bellman import action_values, greedy, optimality_operator, probabilities
from wonderland.rl.process import DecisionProcess, check_discount

SWEEPS = 100_000


@dataclass(frozen=True)
class Solution:
    """Values (s,), action values (s, a), a greedy policy (s,), the sweeps it took, and a bound on the error of the values."""

    values: Tensor
    action_values: Tensor
    policy: Tensor
    sweeps: int
    error: float


def value_iteration(
    process: DecisionProcess, *, discount: float = 0.95, tolerance: float = 1e-10, sweeps: int | None = None
) -> Solution:
    r"""Bellman's optimality operator again and again, until the values are within `tolerance` of the best.

    .. math:: v_{k+1} = T v_k, \qquad \lVert v_k - v_* \rVert_\infty \le \frac{\gamma}{1-\gamma} \lVert v_k - v_{k-1} \rVert_\infty

    With `sweeps`, exactly so many. Book: D2L 17.2.

    >>> process = DecisionProcess([[[1.0], [0.0]]], [[1.0, 3.0]])
    >>> solution = value_iteration(process, discount=0.9)
    >>> round(solution.values.item(), 6), solution.policy.tolist()
    (10.0, [0])
    """
    discount = check_discount(discount)
    values, change, done = torch.zeros(process.states, dtype=torch.float64), math.inf, 0
    factor = discount / (1 - discount) if discount < 1 else 1.0
    limit = SWEEPS if sweeps is None else sweeps
    while done < limit and (sweeps is not None or change * factor > tolerance):
        following = optimality_operator(process, values, discount)
        change, values, done = float((following - values).abs().max()), following, done + 1
        if discount == 0:
            break
    if sweeps is None and discount > 0 and change * factor > tolerance:
        raise WonderlandError(
            f"The values still change by {change:.3g} after {SWEEPS:,} sweeps: with a discount of {discount:g} and no end in "
            "sight they need not settle. Choose a smaller discount."
        )
    q = action_values(process, values, discount)
    bound = change * factor if discount < 1 else math.inf
    return Solution(values, q, greedy(q), done, bound if discount else 0.0)


def policy_evaluation(process: DecisionProcess, policy: Tensor, *, discount: float = 0.95) -> Tensor:
    r"""What each state is worth under a policy, from a linear system.

    .. math:: v_\pi = (I - \gamma P_\pi)^{-1} r_\pi

    Shapes: policy (s, a) of probabilities or (s,) of actions -> (s,).

    >>> process = DecisionProcess([[[1.0], [0.0]]], [[1.0, 3.0]])
    >>> policy_evaluation(process, torch.tensor([[0.5, 0.5]]), discount=0.8).tolist()
    [3.3333333333333335]
    """
    discount = check_discount(discount)
    share = probabilities(process, policy)
    following = torch.einsum("sa,sat->st", share, process.transitions)
    if discount == 1 and not _always_ends(following):
        raise WonderlandError("Under this policy an episode may never end, and a discount of 1 gives no finite value.")
    system = torch.eye(process.states, dtype=torch.float64) - discount * following
    return torch.linalg.solve(system, (share * process.rewards).sum(-1))


def _always_ends(following: Tensor) -> bool:
    """Whether every state reaches the end of an episode with some probability."""
    ends = 1 - following.sum(-1) > 1e-12
    for _ in range(len(following)):
        more = ends | ((following > 0).double() @ ends.double() > 0)
        if torch.equal(more, ends):
            break
        ends = more
    return bool(ends.all())


def policy_iteration(process: DecisionProcess, *, discount: float = 0.95) -> Solution:
    r"""Evaluate a policy, become greedy with its values, and again until nothing changes.

    An action is changed only for one that is better by more than rounding, so it ends after finitely many rounds.

    >>> process = DecisionProcess([[[1.0], [0.0]]], [[1.0, 3.0]])
    >>> policy_iteration(process, discount=0.9).values.tolist()
    [10.000000000000002]
    """
    discount = check_discount(discount)
    policy, rounds = torch.zeros(process.states, dtype=torch.long), 0
    while True:
        values = policy_evaluation(process, policy, discount=discount)
        q = action_values(process, values, discount)
        rounds += 1
        held = q.gather(1, policy[:, None])[:, 0]
        better = q.amax(-1) > held + 1e-10 * held.abs().clamp_min(1)
        if not bool(better.any()):
            return Solution(values, q, greedy(q), rounds, 0.0)
        policy = torch.where(better, greedy(q), policy)
