"""Gates let gradients through time as they say, and nothing else changes."""

import sys
from itertools import product
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.bptt import recurrent
from examples.bptt.__main__ import main
from examples.bptt.recurrent import LENGTH, at_random, by_hand, gradients, loss, problem, regular, whole


def test_the_whole_gradient_is_that_of_the_recursion_and_of_torch():
    given = problem()
    found = gradients(whole(), given)[0]
    torch.testing.assert_close(found, by_hand(given), rtol=1e-12, atol=1e-14)
    within = given.within.unsqueeze(0).requires_grad_()
    loss(within, whole(), given).sum().backward()
    torch.testing.assert_close(found, within.grad[0], rtol=1e-12, atol=1e-14)


def test_gates_change_no_value():
    given = problem()
    gates = torch.cat([whole(), regular(3), at_random(2, 0.5)])
    values = loss(given.within.expand(4, -1, -1), gates, given)
    torch.testing.assert_close(values, values[:1].expand(4))


def test_a_closed_gate_stops_all_that_is_before_it():
    given = problem()
    assert not torch.allclose(gradients(regular(4), given), gradients(whole(), given), rtol=0.1)
    torch.testing.assert_close(gradients(regular(LENGTH), given), gradients(whole(), given))


def test_random_gates_have_mean_one():
    gates = at_random(20000, 0.7)
    assert set(gates.unique().tolist()) == {0.0, 1 / 0.7}
    assert gates.mean().item() == pytest.approx(1, abs=0.005)


def test_random_truncation_has_no_bias_at_all(monkeypatch):
    """All patterns of the gates, each with its probability: the mean is the whole gradient, exactly."""
    monkeypatch.setattr(recurrent, "LENGTH", 6)
    keep, full = 0.7, problem()
    given = recurrent.Problem(full.within, full.into, full.out, full.inputs[:6], full.targets[:6])
    patterns = torch.tensor(list(product([0.0, 1.0], repeat=6)), dtype=torch.float64)
    chance = (patterns * keep + (1 - patterns) * (1 - keep)).prod(1)
    assert chance.sum().item() == pytest.approx(1)
    found = (chance[:, None, None] * gradients(patterns / keep, given)).sum(0)
    torch.testing.assert_close(
        found, gradients(torch.ones(1, 6, dtype=torch.float64), given)[0], rtol=1e-12, atol=1e-14
    )


def test_the_lab(tmp_path):
    assert main(["--out", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"bias", "random", "reach"}
