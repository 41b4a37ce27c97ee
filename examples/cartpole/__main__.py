"""Balance the pole of CartPole-v1: PPO and DQN on several seeds, A2C and REINFORCE on one, each measured on 100 episodes."""

import sys

from examples.lab import Claim, above, run, spread, table
from wonderland import rl

LEARNERS = {
    "PPO": (rl.PPO.spec(), {"steps": 100, "lr": 1e-3, "schedule": "optim.cosine"}),
    "A2C": (rl.A2C.spec(), {"steps": 1500, "lr": 2e-3}),
    "REINFORCE": (rl.REINFORCE.spec(), {"steps": 300, "lr": 5e-3}),
    "DQN": (rl.DQN.spec(), {"steps": 600, "lr": 1e-3, "batch_size": 128, "clip": 10.0, "schedule": "optim.cosine"}),
}
SEVERAL = ("PPO", "DQN")  # learners that are fitted with several seeds


def returns(name: str, seed: int) -> float:
    """The mean return of 100 episodes of a policy that was fitted with this seed."""
    learner, options = LEARNERS[name]
    policy = rl.control("CartPole-v1", learner, seed=seed, **options)
    return float(rl.play(policy, rl.maker("CartPole-v1"), 100, seed=seed).mean())


def lab(seeds: int | str = 5) -> tuple[list[Claim], str, dict[str, str]]:
    reached = {name: [returns(name, seed) for seed in range(int(seeds) if name in SEVERAL else 1)] for name in LEARNERS}
    claims = [
        above("PPO: mean return on its worst seed", min(reached["PPO"]), 475 - 1e-9),
        above("DQN: mean return on its worst seed", min(reached["DQN"]), 475 - 1e-9),
    ]
    rows = [
        (name, len(values), spread(values, 1) if len(values) > 1 else f"{values[0]:.1f}")
        for name, values in reached.items()
    ]
    return claims, table(("learner", "seeds", "mean return"), rows), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run(
        "cartpole", __doc__, lab, given, {"--seeds": {"default": 5, "help": "seeds of PPO and of DQN (default 5)"}}
    )


if __name__ == "__main__":
    sys.exit(main())
