"""The printed traces to six digits, the turn that some rules do not see, and counting of steps."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.lab.functions import bowl, ripple
from examples.optimizer_race.__main__ import at, main, newton, traces, turning
from examples.optimizer_race.rules import RACERS, fastest, path, steps_to


@pytest.mark.parametrize("claims", [traces, turning])
def test_the_stated_numbers(claims):
    found = claims()
    assert len(found) >= 5
    assert [str(claim) for claim in found if not claim.met] == []


def test_steps_are_counted_when_a_path_stays():
    line = torch.tensor([[3.0], [0.0], [2.0], *[[0.0]] * 4])
    assert steps_to(line, torch.zeros(1), 0.5, stay=3) == 3
    assert steps_to(line, torch.zeros(1), 0.5, stay=1) == 1
    assert steps_to(line, torch.ones(1) * 9, 0.5, stay=1) is None


def test_a_racer_finds_a_rate():
    steps, rate = fastest("gradient descent", bowl, at(-5.0, -2.0), at(0, 0), within=5e-3, steps=40)
    assert (steps, rate) == (14, 0.2)


@pytest.mark.parametrize("name", RACERS)
def test_every_racer_goes_down(name):
    kind, options = RACERS[name]
    points = path(kind, bowl, at(-5.0, -2.0), 30, lr=0.05, **options)
    assert points.shape == (31, 2)
    assert bowl(points[-1]) < bowl(points[0])


def test_newton_finds_a_minimum_to_the_last_bit():
    x = newton(ripple, at(7.2), 5).requires_grad_()
    ripple(x).backward()
    assert x.grad.abs().item() < 1e-14
    assert x.item() == pytest.approx(7.269388, abs=1e-6)


@pytest.mark.slow
def test_the_lab(tmp_path):
    assert main(["--out", str(tmp_path)]) == 0
    assert {file.stem for file in tmp_path.iterdir()} == {"valley", "turned_valley", "hills", "loss"}
