"""check: laws on any module."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import wonderland
from tests.laws.toys import Convolution, Peek
from wonderland.core import WonderlandError
from wonderland.laws import Example, causality


def test_a_module_that_promises_nothing_is_held_to_what_any_module_should_do():
    verdicts = wonderland.check(nn.LSTM(4, 4, batch_first=True), torch.randn(2, 5, 4))
    assert [verdict.law for verdict in verdicts] == [
        "determinism", "batch_independence", "padding_invariance", "gradients", "finiteness", "save_load",
        "causality", "streaming", "permutation_equivariance",
    ]  # fmt: skip
    assert verdicts.broken == []
    assert verdicts["causality"].outcome == "holds"
    assert verdicts["permutation_equivariance"].outcome == "broken"
    assert not verdicts["permutation_equivariance"].promised


def test_a_law_that_was_asked_for_counts():
    verdicts = wonderland.check(Peek(2, 5), Example.floats(2, 7, 4), ["causality", "determinism"])
    assert [verdict.law for verdict in verdicts.broken] == ["causality"]
    assert wonderland.check(Peek(2, 5), Example.floats(2, 7, 4), causality).broken == verdicts.broken
    assert wonderland.check(Peek(2, 5), Example.floats(2, 7, 4), "causality").broken == verdicts.broken


def test_a_module_is_held_to_its_promises():
    class Promising(Convolution):
        def laws(self):
            return (wonderland.laws.causality, "locality")

    verdicts = wonderland.check(Promising(4, 3, causal=False), Example.floats(2, 7, 4))
    assert [verdict.law for verdict in verdicts] == ["causality", "locality"]
    assert [verdict.law for verdict in verdicts.broken] == ["causality"]


def test_an_unknown_law_is_answered_with_the_nearest():
    with pytest.raises(WonderlandError) as error:
        wonderland.check(nn.Identity(), torch.ones(2, 3), ["casuality"])
    assert (
        str(error.value) == "There is no law 'casuality'. Did you mean 'causality' or 'locality' or 'strict_causality'?"
    )
    with pytest.raises(WonderlandError, match=r"There is no law 'x'\. Laws are batch_independence, causality, "):
        wonderland.check(nn.Identity(), torch.ones(2, 3), ["x"])


def test_what_is_not_a_module_is_refused():
    with pytest.raises(WonderlandError) as error:
        wonderland.check("model", torch.ones(2, 3))
    assert str(error.value) == "Laws are checked on a torch module, not on a str."


def test_the_module_and_all_random_numbers_are_left_as_they_were():
    class Careless(nn.Linear):
        def forward(self, x):
            random.random()
            np.random.rand()  # noqa: NPY002
            torch.rand(1)
            return super().forward(x)

    block = Careless(4, 4).train()
    before = {name: value.clone() for name, value in block.state_dict().items()}
    states = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    wonderland.check(block, torch.randn(2, 3, 4, generator=torch.Generator()))
    assert block.training
    assert all(torch.equal(value, before[name]) for name, value in block.state_dict().items())
    assert all(value.grad is None for value in block.parameters())
    assert states == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002


def test_it_works_without_gradients_around_it():
    with torch.no_grad():
        assert wonderland.check(nn.Linear(4, 4), torch.randn(2, 3, 4)).broken == []
    with torch.inference_mode():
        assert wonderland.check(nn.Linear(4, 4), torch.randn(2, 3, 4)).broken == []
