"""FrozenLake and the cliff: quick facts in the default suite, the whole labs in the slow one."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.cartpole import __main__ as cartpole
from examples.cliff_walking import __main__ as cliff_walking
from examples.frozen_lake import __main__ as frozen_lake
from wonderland import rl


def test_two_seeds_of_the_lake():
    assert frozen_lake.solved(256, range(2)) == 2


def test_q_learning_walks_along_the_cliff():
    assert cliff_walking.path(cliff_walking.walked(rl.q_learning, 0).policy) == 13


@pytest.mark.slow
@pytest.mark.parametrize("lab", [frozen_lake, cliff_walking, cartpole])
def test_the_whole_lab(lab, tmp_path):
    assert lab.main(["--out", str(tmp_path)]) == 0
