"""Options of environments."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions

LEARNERS = ("ppo", "a2c", "reinforce", "dqn")


@dataclass(frozen=True)
class Options(KindOptions):
    """Environments of gymnasium (gym:CartPole-v1), or your own (module:Class): a policy is learned from episodes."""

    learner: str | None = option(help="how the policy is learned (default ppo)", choices=LEARNERS)
    episodes: int | None = option(help="how many episodes measure the policy (default 100)", least=2, most=100_000)
    environments: int | None = option(
        help="how many environments are played side by side (default 8)", least=1, most=256
    )
    horizon: int | None = option(help="how many steps each of them takes between two updates", least=1, most=100_000)
    discount: float | None = option(help="how much a reward one step later counts (default 0.99)", least=0, most=1)
    limit: int | None = option(
        help="episodes are cut after so many steps (default: the environment's own limit)", least=1
    )
