"""Decisions: finite Markov decision processes, tables of action values, bandits, and policies that learn by gradients."""

from wonderland.rl.actor_critic import ActorCritic
from wonderland.rl.bandits import Pulled, bandit, by, thompson
from wonderland.rl.bellman import action_values, expectation_operator, greedy, optimality_operator
from wonderland.rl.control import control, maker, play
from wonderland.rl.dqn import DQN, QNetwork
from wonderland.rl.exploration import Boltzmann, EpsilonGreedy, Exploration, UpperConfidence
from wonderland.rl.on_policy import A2C, PPO, REINFORCE, Turn, advantages
from wonderland.rl.planning import Solution, policy_evaluation, policy_iteration, value_iteration
from wonderland.rl.process import DecisionProcess
from wonderland.rl.replay import Replay
from wonderland.rl.tabular import Learned, Walk, expected_sarsa, q_learning, sarsa
from wonderland.rl.vector import Environments

__all__ = [
    "A2C",
    "DQN",
    "PPO",
    "REINFORCE",
    "ActorCritic",
    "Boltzmann",
    "DecisionProcess",
    "Environments",
    "EpsilonGreedy",
    "Exploration",
    "Learned",
    "Pulled",
    "QNetwork",
    "Replay",
    "Solution",
    "Turn",
    "UpperConfidence",
    "Walk",
    "action_values",
    "advantages",
    "bandit",
    "by",
    "control",
    "expectation_operator",
    "expected_sarsa",
    "greedy",
    "maker",
    "optimality_operator",
    "play",
    "policy_evaluation",
    "policy_iteration",
    "q_learning",
    "sarsa",
    "thompson",
    "value_iteration",
]
