"""Returns of n steps: rewards of several steps, and the value of the observation that comes after them."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Returns:
    """For each step: the rewards until the bootstrap (t, n), the observation there (t, n, features), the factor of its value (t, n)."""

    rewards: np.ndarray
    following: np.ndarray
    factor: np.ndarray


def n_step_returns(
    rewards: np.ndarray, following: np.ndarray, ended: np.ndarray, cut: np.ndarray, discount: float, n: int
) -> Returns:
    r"""The return of step t over the next k steps, k = n or fewer where the episode is over or the recording stops.

    .. math:: R_t = \sum_{i=0}^{k-1} \gamma^i r_{t+i}, \qquad y_t = R_t + \gamma^k (1 - \text{end}) \, q(s_{t+k})

    Shapes: rewards, ended, cut (t, envs); following (t, envs, features), the last observation of an episode where it is over.
    Paper: Sutton, 1988.

    >>> none = np.zeros((3, 1), bool)
    >>> n_step_returns(np.ones((3, 1)), np.zeros((3, 1, 2)), none, none, 0.5, 2).rewards[:, 0].tolist()
    [1.5, 1.5, 1.0]
    """
    total, last, factor = rewards.copy(), following.copy(), discount * (1.0 - ended)
    stop = ended | cut
    over = stop.copy()
    for k in range(1, min(n, len(rewards))):
        goes_on = ~over[:-k]
        total[:-k] += np.where(goes_on, discount**k * rewards[k:], 0)
        last[:-k] = np.where(goes_on[..., None], following[k:], last[:-k])
        factor[:-k] = np.where(goes_on, discount ** (k + 1) * (1.0 - ended[k:]), factor[:-k])
        over[:-k] |= stop[k:]
    return Returns(total, last, factor)
