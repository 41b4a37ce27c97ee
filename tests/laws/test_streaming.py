"""Streaming detects pieces that differ from the whole."""

import pytest
import torch
from torch import nn

from tests.laws.toys import Running
from wonderland import nn as mixers
from wonderland.laws import Example, streaming

X = Example.floats(3, 7, 4)


@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_a_running_sum_streams(length):
    verdict = streaming(Running(), Example.floats(3, length, 4))
    assert verdict.outcome == "holds"
    assert verdict.witness == "a state of 4 numbers a row, whatever the length"


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("forgets at the second piece", "of piece 1"),
        ("forgets without gradients", ", without gradients; the first that differs is output"),
        ("cuts the gradient", "differs from that of the whole, cut as"),
        ("writes into the state", "tensor 0 of the state it was given was written to"),
        ("moves on at padding", "from its real tokens alone, in pieces with"),
        ("whole", "from the whole, cut as"),
    ],
)
def test_a_fault_is_found_and_named(length, fault, words):
    verdict = streaming(Running(fault=fault), Example.floats(3, length, 4))
    assert not verdict
    assert words in verdict.witness


def test_the_first_position_of_the_second_piece_is_named():
    witness = streaming(Running(fault="forgets at the second piece"), Example.floats(3, 2, 4)).witness
    assert "cut as 1+1; the first that differs is output 1, position 0 of piece 1" in witness


def test_a_state_that_grows_is_reported():
    class Cache(nn.Module):
        def forward(self, x):
            return x.cumsum(1)

        def stream(self, x, state=None):
            seen = x if state is None else torch.cat([state[0], x], 1)
            return seen.cumsum(1)[:, -x.shape[1] :], (seen,)

    assert streaming(Cache(), X).witness == "a state of 4 numbers a row after 1 token and 28 after 7"


def test_a_state_with_a_memory_of_its_own_is_found():
    class Counter(Running):
        calls = 0

        def stream(self, x, state=None, mask=None):
            self.calls += 1
            y, state = super().stream(x, state, mask)
            return y + (1e-3 * self.calls if len(x) and x.shape[1] == 7 and state and self.calls > 20 else 0), state

    assert not streaming(Counter(), X)


def test_a_call_that_fails_is_told():
    class Brief(Running):
        def stream(self, x, state=None, mask=None):
            if state is not None:
                raise RuntimeError("no room left\nmore words")
            return super().stream(x, state, mask)

    verdict = streaming(Brief(), X)
    assert not verdict
    assert verdict.witness == "it raised RuntimeError (no room left) at piece 1, cut as 7 single steps"


def test_it_says_why_it_does_not_apply():
    assert streaming(nn.Identity(), X).witness == "it has no stream"
    block = Running()
    block.causal = False
    assert streaming(block, X).witness == "it is not causal, so it does not stream"


@pytest.mark.parametrize(
    "block",
    [
        lambda: mixers.AFT(4, form="full", length=20),
        lambda: mixers.Attention(4, heads=1, position=mixers.RelativeBias.spec(tied=False, length=20)),
    ],
)
def test_tables_of_positions_may_end_with_the_example(block):
    assert streaming(block(), torch.randn(2, 20, 4)).outcome == "holds"
