"""Decisions: finite Markov decision processes, tables of action values, bandits, and policies that learn by gradients."""

from wonderland.rl.bandits import Pulled, bandit, by, thompson
from wonderland.rl.bellman import action_values, expectation_operator, greedy, optimality_operator
from wonderland.rl.exploration import Boltzmann, EpsilonGreedy, Exploration, UpperConfidence
from wonderland.rl.planning import Solution, policy_evaluation, policy_iteration, value_iteration
from wonderland.rl.process import DecisionProcess
from wonderland.rl.tabular import Learned, Walk, expected_sarsa, q_learning, sarsa

__all__ = [
    "Boltzmann",
    "DecisionProcess",
    "EpsilonGreedy",
    "Exploration",
    "Learned",
    "Pulled",
    "Solution",
    "UpperConfidence",
    "Walk",
    "action_values",
    "bandit",
    "by",
    "expectation_operator",
    "expected_sarsa",
    "greedy",
    "optimality_operator",
    "policy_evaluation",
    "policy_iteration",
    "q_learning",
    "sarsa",
    "thompson",
    "value_iteration",
]
