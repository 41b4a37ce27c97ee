"""Newton's steps, and when they lead astray."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.lab.functions import turned_valley
from examples.newton.__main__ import d2l, expected, main, speed
from examples.newton.methods import absolute, condition, diagonal, follow, plain, preconditioned, steps_until, whole


@pytest.mark.parametrize("step", [whole, absolute])
def test_quadratics_take_one_step(step):
    start = torch.tensor([-5.0, -2.0], dtype=torch.float64)
    assert follow(turned_valley, start, 1, step)[-1].norm() < 1e-12


def test_steps_see_what_they_should_of_the_curvature():
    gradient, table = torch.tensor([2.0, 3.0]), torch.tensor([[-4.0, 0.0], [0.0, 0.5]])
    assert torch.equal(plain(gradient, lambda: table), gradient)
    torch.testing.assert_close(whole(gradient, lambda: table), torch.tensor([-0.5, 6.0]))
    torch.testing.assert_close(absolute(gradient, lambda: table), torch.tensor([0.5, 6.0]))
    torch.testing.assert_close(diagonal(gradient, lambda: table), torch.tensor([-0.5, 6.0]))


def test_a_scaled_diagonal_is_healed():
    table = torch.diag(torch.tensor([1.0, 100.0]))
    assert condition(table) == 100
    assert condition(preconditioned(table)) == 1


def test_steps_until():
    path = torch.tensor([[8.0, 0.0], [4.0, 0.0], [1.0, 0.0]])
    assert steps_until(path, 0.5) == 1
    assert steps_until(path, 0.01) == -1
    assert (expected(1.0), expected(20.0)) == (1, 70)


@pytest.mark.parametrize("claims", [lambda: (d2l(), None), speed])
def test_the_stated_numbers(claims):
    assert [str(claim) for claim in claims()[0] if not claim.met] == []


@pytest.mark.slow
def test_the_lab(tmp_path):
    assert main(["--out", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"speed", "valley", "turned_valley", "saddle"}
