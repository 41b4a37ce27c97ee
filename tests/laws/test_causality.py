"""Causality detects dependence on later inputs and reports where."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.laws.toys import Convolution, Peek
from wonderland.laws import Example, causality, strict_causality

X = Example.floats(2, 7, 4)


@settings(max_examples=15, deadline=None)
@given(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.booleans(), st.sampled_from([1.0, 1e-3, 1e-9]))
def test_a_leak_is_found_wherever_it_is(place, hidden, amount):
    output, sees = place
    verdict = causality(Peek(output, sees, amount, hidden=hidden), X)
    assert bool(verdict) == (sees <= output)
    if not verdict:
        assert f"output {output} moved by" in verdict.witness
        assert f"when input {sees} changed" in verdict.witness


def test_a_derivative_alone_is_found_too():
    class Straight(nn.Module):
        def forward(self, x):
            later = x.flip(1)
            return x + later - later.detach()

    verdict = causality(Straight(), X)
    assert not verdict
    assert "has a derivative of" in verdict.witness
    assert any(f"output {i}" in verdict.witness and f"by input {6 - i}" in verdict.witness for i in range(3))


def test_the_worst_and_the_first_are_named():
    class Two(nn.Module):
        def forward(self, x):
            y = x.clone()
            y[:, 1] = y[:, 1] + 0.01 * x[:, 2]
            y[:, 4] = y[:, 4] + 5 * x[:, 6]
            return y

    witness = causality(Two(), X).witness
    assert witness.startswith("output 4 moved by")
    assert "when input 6 changed" in witness
    assert "; the first of 2 such: output 1 moved by" in witness
    assert "when input 2 changed" in witness


def test_tokens_are_changed_where_there_is_no_derivative():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(11, 4)

        def forward(self, tokens):
            y = self.table(tokens)
            return torch.cat([y[:, :2], (y[:, 2] + y[:, 5]).unsqueeze(1), y[:, 3:]], 1)

    verdict = causality(Language(), Example.tokens(2, 7, vocab=11))
    assert "output 2 moved by" in verdict.witness
    assert "when input 5 changed" in verdict.witness


def test_rounding_of_a_transform_is_causal_but_not_strictly():
    class Fourier(nn.Module):
        def forward(self, x):
            kernel = torch.linspace(1, 0.1, x.shape[1], dtype=x.dtype)
            n = 2 * x.shape[1]
            product = torch.fft.rfft(x, n, dim=1) * torch.fft.rfft(kernel, n).unsqueeze(-1)
            return torch.fft.irfft(product, n, dim=1)[:, : x.shape[1]]

    assert causality(Fourier(), X).outcome == "holds"
    assert strict_causality(Fourier(), X).outcome == "broken"


def test_strict_causality_finds_zero_times_nan():
    class Masked(nn.Module):
        def forward(self, x):
            past = torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).tril()
            return past @ x

    assert causality(Masked(), X).outcome == "holds"
    verdict = strict_causality(Masked(), X)
    assert not verdict
    assert verdict.witness == "output 0 changed when inputs 1 to 6 were nan"


def test_a_causal_convolution_is_strictly_causal():
    assert strict_causality(Convolution(4, 3), X).outcome == "holds"


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        (Example.floats(2, 1, 4), "one position has no future"),
        (Example.floats(2, 7, 4, output=lambda y: y.mean(1)), "the output of shape (2, 4) does not have the 7 positions of the input"),
        (Example.floats(2, 7, 4, axes=("batch",)), "the input has no axis of time"),
        (Example((torch.zeros(2, 7, dtype=torch.int64),), output=lambda y: y.double()), "tokens have one value only, so that none can be changed"),
    ],
)  # fmt: skip
def test_it_says_why_it_does_not_apply(example, reason):
    verdict = causality(nn.Identity(), example)
    assert verdict.outcome == "not applicable"
    assert verdict.witness == reason
    assert verdict


def test_long_sequences_are_probed_at_both_ends():
    example = Example.floats(1, 300, 1)
    assert not causality(Peek(0, 299), example)
    assert not causality(Peek(298, 299), example)
