"""Determinism detects randomness and state that persists between calls."""

import torch
from torch import nn

from wonderland.laws import Example, determinism

X = Example.floats(2, 5, 4)


def test_dropout_rests_in_eval():
    assert determinism(nn.Dropout(0.5), X).outcome == "holds"


def test_noise_is_found():
    class Noise(nn.Module):
        def forward(self, x):
            y = x.clone()
            y[1, 3] = y[1, 3] + torch.randn(())
            return y

    verdict = determinism(Noise(), X)
    assert not verdict
    assert verdict.witness.startswith("output 3 (row 1) moved by")
    assert verdict.witness.endswith("when called again")


def test_a_seed_of_its_own_that_hides_noise_is_found_after_reseeding():
    class Hidden(nn.Module):
        def forward(self, x):
            with torch.random.fork_rng():
                return x + torch.randn(())

    verdict = determinism(Hidden(), X)
    assert not verdict
    assert verdict.witness.endswith("after random numbers were seeded anew")


def test_a_counter_is_found():
    class Counter(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x + self.calls

    assert not determinism(Counter(), X)


def test_the_users_random_numbers_are_not_touched():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    determinism(nn.Dropout(), X)
    assert torch.equal(torch.rand(3), expected)
