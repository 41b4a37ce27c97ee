"""Cliff walking: Q-learning finds the shortest path along the edge, SARSA the safe one while it explores (Sutton and Barto, example 6.6)."""

import sys

import numpy as np

from examples.lab import Claim, above, equal, lines, run, spread, table
from wonderland import rl
from wonderland.rl.environment import gymnasium

WAYS = {"Q-learning": rl.q_learning, "SARSA": rl.sarsa, "expected SARSA": rl.expected_sarsa}


def walked(way, seed: int, episodes: int = 500) -> rl.Learned:
    """Episodes on the cliff with one random action in ten."""
    return way(gymnasium().make("CliffWalking-v1"), episodes=episodes, rate=0.5, discount=1.0, explore=rl.EpsilonGreedy(0.1), seed=seed)  # fmt: skip


def path(policy) -> int:
    """Moves of the greedy policy from the start to the goal, at most 100."""
    process = rl.DecisionProcess.from_gymnasium(gymnasium().make("CliffWalking-v1"))
    state, moves = 36, 1
    while not process.ends[state, policy[state]] and moves < 100:
        state, moves = int(process.transitions[state, policy[state]].argmax()), moves + 1
    return moves


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    learned = {name: [walked(way, seed) for seed in range(5)] for name, way in WAYS.items()}
    returns = {name: np.mean([each.returns for each in runs], 0) for name, runs in learned.items()}
    late = {name: [float(each.returns[-200:].mean()) for each in runs] for name, runs in learned.items()}
    moves = {name: float(np.median([path(each.policy) for each in runs])) for name, runs in learned.items()}
    claims = [
        equal("Q-learning: moves of its greedy path, median of 5 seeds", moves["Q-learning"], 13.0),
        above("SARSA: return while exploring, above that of Q-learning by", np.mean(late["SARSA"]) - np.mean(late["Q-learning"]), 10),
        above("SARSA: moves of its greedy path, median of 5 seeds", moves["SARSA"], 13),
    ]  # fmt: skip
    rows = [(name, spread(late[name], 1), moves[name]) for name in WAYS]
    smooth = {
        name: [(i, float(values[max(0, i - 20) : i + 1].clip(-200).mean())) for i in range(0, len(values), 5)]
        for name, values in returns.items()
    }
    picture = lines(smooth, title="Return while exploring", x_label="episode", y_label="return")
    return claims, table(("way", "return of the last 200 episodes", "greedy moves"), rows), {"returns": picture}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("cliff_walking", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
