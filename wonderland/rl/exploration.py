"""Exploration: which action to try, from what is thought of each."""

from abc import abstractmethod
from typing import Protocol

import numpy as np


class Exploration(Protocol):
    """Probabilities of actions from their values (a,) and how often each was tried here (a,)."""

    @abstractmethod
    def probabilities(self, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The chance of each action: (a,)."""


class EpsilonGreedy:
    r"""The best action, or with probability :math:`\epsilon` any; equals share.

    >>> EpsilonGreedy(0.2).probabilities(np.array([1.0, 0.0]), np.zeros(2)).tolist()
    [0.9, 0.1]
    """

    def __init__(self, epsilon: float):
        self.epsilon = epsilon

    def probabilities(self, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
        best = values == values.max()
        return self.epsilon / len(values) + (1 - self.epsilon) * best / best.sum()


class Boltzmann:
    r"""Softmax of the values over a temperature.

    .. math:: \pi_a = e^{q_a / \tau} / \sum_b e^{q_b / \tau}

    >>> Boltzmann(1.0).probabilities(np.array([0.0, 0.0]), np.zeros(2)).tolist()
    [0.5, 0.5]
    """

    def __init__(self, temperature: float):
        self.temperature = temperature

    def probabilities(self, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
        weights = np.exp((values - values.max()) / self.temperature)
        return weights / weights.sum()


class UpperConfidence:
    r"""The action whose value could be highest; one never tried comes first. UCB1.

    .. math:: \arg\max_a q_a + c \sqrt{\ln n / n_a}

    >>> UpperConfidence(1.0).probabilities(np.array([1.0, 0.9]), np.array([100, 1])).tolist()
    [0.0, 1.0]
    """

    def __init__(self, width: float = 2**0.5):
        self.width = width

    def probabilities(self, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
        if (counts == 0).any():
            return (counts == 0) / (counts == 0).sum()
        scores = values + self.width * np.sqrt(np.log(counts.sum()) / counts)
        best = scores == scores.max()
        return best / best.sum()
