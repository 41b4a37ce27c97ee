"""Finite processes and tables of action values: H43, H44, and what SARSA and Q-learning think of a cliff."""

import gymnasium
import numpy as np
import pytest
import torch

from wonderland import rl
from wonderland.core import WonderlandError


def lake(slippery: bool = False):
    return gymnasium.make("FrozenLake-v1", is_slippery=slippery)


def random_process(states: int = 6, actions: int = 3) -> rl.DecisionProcess:
    draw = torch.Generator().manual_seed(0)
    p = torch.rand(states, actions, states, generator=draw, dtype=torch.float64)
    return rl.DecisionProcess(p / p.sum(-1, keepdim=True) * 0.9, torch.randn(states, actions, generator=draw).double())


def test_value_iteration_on_the_lake_gives_the_printed_numbers():
    process = rl.DecisionProcess.from_gymnasium(lake())
    assert rl.value_iteration(process, discount=0.95, sweeps=5).values[0] == 0
    for sweeps in (6, 10):
        assert rl.value_iteration(process, discount=0.95, sweeps=sweeps).values[0].item() == pytest.approx(
            0.95**5, abs=1e-12
        )
    assert f"{rl.value_iteration(process, discount=0.95).values[0]:.6f}" == "0.773781"
    slippery = rl.DecisionProcess.from_gymnasium(lake(True))
    assert f"{rl.value_iteration(slippery, discount=0.95).values[0]:.6f}" == "0.180472"
    assert f"{rl.policy_iteration(slippery, discount=0.95).values[0]:.6f}" == "0.180472"


def test_q_learning_on_the_lake_finds_the_best_policy_for_every_seed():
    process = rl.DecisionProcess.from_gymnasium(lake())
    best = rl.value_iteration(process, discount=0.95).values[0].item()
    worth = []
    for seed in range(10):
        learned = rl.q_learning(lake(), episodes=256, rate=0.9, discount=0.95, explore=rl.EpsilonGreedy(0.9), seed=seed)
        worth.append(rl.policy_evaluation(process, learned.policy, discount=0.95)[0].item())
    assert worth == pytest.approx([best] * 10)


def test_the_lake_after_a_thousand_episodes():
    process = rl.DecisionProcess.from_gymnasium(lake())
    for seed in range(10):
        policy = rl.q_learning(lake(), episodes=1000, seed=seed).policy
        assert rl.policy_evaluation(process, policy)[0].item() == pytest.approx(0.95**5)


def test_values_solve_bellmans_equations():
    process = random_process()
    solution = rl.value_iteration(process, discount=0.9)
    assert torch.allclose(rl.optimality_operator(process, solution.values, 0.9), solution.values, atol=1e-9)
    assert torch.allclose(solution.action_values, rl.action_values(process, solution.values, 0.9))
    assert torch.allclose(rl.policy_iteration(process, discount=0.9).values, solution.values, atol=1e-9)
    assert torch.allclose(rl.policy_evaluation(process, solution.policy, discount=0.9), solution.values, atol=1e-9)
    policy = torch.full((6, 3), 1 / 3)
    values = rl.policy_evaluation(process, policy, discount=0.9)
    assert torch.allclose(rl.expectation_operator(process, policy, values, 0.9), values)
    assert bool((values <= solution.values + 1e-12).all())


def test_the_operator_contracts_and_the_bound_holds():
    process = random_process()
    a, b = torch.randn(6).double(), torch.randn(6).double()
    apart = (rl.optimality_operator(process, a, 0.9) - rl.optimality_operator(process, b, 0.9)).abs().max()
    assert apart <= 0.9 * (a - b).abs().max()
    exact = rl.policy_iteration(process, discount=0.9).values
    for sweeps in (1, 5, 20):
        rough = rl.value_iteration(process, discount=0.9, sweeps=sweeps)
        assert (rough.values - exact).abs().max() <= rough.error


def test_sarsa_keeps_away_from_the_cliff_and_q_learning_walks_along_it():
    settings = {"episodes": 400, "rate": 0.5, "discount": 1.0, "explore": rl.EpsilonGreedy(0.1), "seed": 0}
    ways = {
        way: way(gymnasium.make("CliffWalking-v1"), **settings) for way in (rl.q_learning, rl.sarsa, rl.expected_sarsa)
    }
    returns = {way: learned.returns[-200:].mean() for way, learned in ways.items()}
    assert returns[rl.sarsa] > returns[rl.q_learning] + 5
    assert returns[rl.expected_sarsa] > returns[rl.q_learning] + 5
    process = rl.DecisionProcess.from_gymnasium(gymnasium.make("CliffWalking-v1"))
    state, steps = 36, 0
    while process.ends[state, ways[rl.q_learning].policy[state]] == 0 and steps < 50:
        state, steps = int(process.transitions[state, ways[rl.q_learning].policy[state]].argmax()), steps + 1
    assert steps == 12  # thirteen moves: up, eleven to the right, down


def test_a_table_learns_a_process_without_gymnasium():
    process = random_process()
    best = rl.value_iteration(process, discount=0.8)
    learned = rl.q_learning(process, episodes=3000, rate=0.02, discount=0.8, explore=rl.Boltzmann(1.0))
    assert torch.allclose(learned.action_values, best.action_values, atol=0.4)
    assert np.array_equal(
        learned.returns,
        rl.q_learning(process, episodes=3000, rate=0.02, discount=0.8, explore=rl.Boltzmann(1.0)).returns,
    )
    tried = rl.q_learning(process, episodes=1500, rate=0.05, discount=0.8, explore=rl.UpperConfidence(2.0))
    assert float(rl.policy_evaluation(process, tried.policy, discount=0.8)[0]) > float(best.values[0]) - 0.5


@pytest.mark.parametrize("way", ["ucb", "thompson"])
def test_regret_of_a_bandit_grows_slowly(way):
    regret = np.mean([rl.bandit([0.2, 0.5, 0.8], way, pulls=2000, seed=seed).regret for seed in range(5)], 0)
    assert regret[-1] < 120
    assert regret[-1] - regret[1000] < regret[999]
    greedy = np.mean([rl.bandit([0.2, 0.5, 0.8], "epsilon", pulls=2000, seed=seed).regret for seed in range(5)], 0)
    assert greedy[-1] == pytest.approx(2000 * 0.1 * 0.3, rel=0.6)


class Broken(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fault):
        self.fault = fault

    def reset(self, *, seed=None, options=None):
        if self.fault == "reset":
            raise OSError("no display")
        return 0, {}

    def step(self, action):
        if self.fault == "step":
            raise ZeroDivisionError("division by zero")
        return 1, np.inf if self.fault == "reward" else 0.0, False, False, {}


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("reset", "Broken fails at its reset: OSError: no display"),
        ("step", "Broken fails at action 0: ZeroDivisionError: division by zero"),
        ("reward", "Broken gives a reward of inf, and nothing can be learned from that."),
    ],
)
def test_environments_that_fail_are_told_in_a_sentence(fault, sentence):
    with pytest.raises(WonderlandError) as told:
        rl.q_learning(Broken(fault), episodes=2, explore=rl.EpsilonGreedy(0.0), seed=1)
    assert str(told.value).replace("action 1", "action 0") == sentence


def test_an_environment_without_an_end_is_cut():
    learned = rl.q_learning(Broken(""), episodes=2, longest=50)
    assert learned.lengths.tolist() == [50, 50]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: rl.DecisionProcess([[1.0]], [[0.0]]), "Transitions have shape (states, actions, states), not (1, 1)."),
        (lambda: rl.DecisionProcess([[[1.0]]], [0.0]), "Rewards have shape (1, 1) or (1, 1, 1) here, not (1,)."),
        (lambda: rl.DecisionProcess([[[1.1]]], [[0.0]]), "Transitions must be probabilities: none below 0, and those of one state and action sum to at most 1."),
        (lambda: rl.DecisionProcess([[[1.0]]], [[float("inf")]]), "A reward of this process is not a finite number."),
        (lambda: rl.DecisionProcess([[[1.0]]], [[0.0]], [0.5]), "start must be 1 probabilities that sum to 1."),
        (lambda: rl.value_iteration(random_process(), discount=1.5), "discount must be between 0 and 1, not 1.5."),
        (lambda: rl.value_iteration(rl.DecisionProcess([[[1.0]]], [[1.0]]), discount=1.0), "The values still change by 1 after 100,000 sweeps: with a discount of 1 and no end in sight they need not settle. Choose a smaller discount."),
        (lambda: rl.policy_evaluation(rl.DecisionProcess([[[1.0]]], [[1.0]]), torch.tensor([0]), discount=1.0), "Under this policy an episode may never end, and a discount of 1 gives no finite value."),
        (lambda: rl.policy_evaluation(random_process(), torch.tensor([7] * 6)), "A policy names actions from 0 to 2."),
        (lambda: rl.policy_evaluation(random_process(), torch.ones(2, 2)), "A policy is one whole number for each of 6 states, or probabilities of shape (6, 3), not (2, 2)."),
        (lambda: rl.policy_evaluation(random_process(), torch.ones(6, 3)), "The probabilities of a policy are not below 0 and sum to 1 in each state."),
        (lambda: rl.q_learning(random_process(), rate=0), "rate must be above 0 and at most 1, not 0."),
        (lambda: rl.q_learning(gymnasium.make("CartPole-v1")), "CartPole-v1 has no finite number of states and actions, counted from 0, so there is no table to learn. Use a network: wonderland fit gym:NAME."),
        (lambda: rl.DecisionProcess.from_gymnasium(gymnasium.make("CartPole-v1")), "CartPoleEnv has no table P of transitions, so it is no finite process that can be read. Learn from its episodes instead: rl.q_learning(env)."),
        (lambda: rl.bandit([2.0], "ucb"), "The arms of a bandit pay with chances between 0 and 1."),
        (lambda: rl.bandit([0.5], "luck"), "There is no way to play called 'luck'. Known are epsilon, ucb, thompson."),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(make, sentence):
    with pytest.raises(WonderlandError) as told:
        make()
    assert str(told.value) == sentence
