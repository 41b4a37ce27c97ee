"""FrozenLake by value iteration and by Q-learning: D2L 17.2 and 17.3, ten seeds."""

import sys

from examples.lab import Claim, about, equal, lines, run, table
from wonderland import rl
from wonderland.rl.environment import gymnasium

SEEDS = range(10)


def lake(slippery: bool = False):
    """The 4 x 4 lake."""
    return gymnasium().make("FrozenLake-v1", is_slippery=slippery)


def solved(episodes: int, seeds=SEEDS) -> int:
    """How many seeds end with a policy that is worth the best value at the start."""
    process = rl.DecisionProcess.from_gymnasium(lake())
    best = rl.value_iteration(process, discount=0.95).values[0].item()
    policies = [rl.q_learning(lake(), episodes=episodes, rate=0.9, discount=0.95, seed=seed).policy for seed in seeds]
    return sum(abs(rl.policy_evaluation(process, policy)[0].item() - best) < 1e-9 for policy in policies)


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    process, slippery = (rl.DecisionProcess.from_gymnasium(lake(slips)) for slips in (False, True))
    curves = {
        name: [(k, rl.value_iteration(each, discount=0.95, sweeps=k).values[0].item()) for k in range(1, 61)]
        for name, each in (("dry", process), ("slippery", slippery))
    }
    few, many = solved(256), solved(1000)
    claims = [
        about("dry: the start is worth, after 6 sweeps", curves["dry"][5][1], 0.773781, 5e-7),
        about("slippery: the start is worth", rl.value_iteration(slippery).values[0].item(), 0.180472, 5e-7),
        Claim("Q-learning, 256 episodes: best policy on 8 of 10 seeds", f"{few} of 10", few >= 8),
        equal("Q-learning, 1,000 episodes: best policy on so many of 10 seeds", many, 10),
    ]
    picture = lines(curves, title="Value of the start by sweeps", x_label="sweep", y_label="value")
    return claims, table(("episodes", "seeds with the best policy"), [(256, few), (1000, many)]), {"values": picture}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("frozen_lake", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
