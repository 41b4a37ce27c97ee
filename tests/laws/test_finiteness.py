"""Finiteness detects overflow, underflow and division by zero."""

import torch
from torch import nn

from wonderland.laws import Example, finiteness

X = Example.floats(2, 5, 4)


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_softmax_and_norms_are_finite():
    assert finiteness(nn.Sequential(nn.LayerNorm(4), nn.Softmax(-1)), X).outcome == "holds"


def test_an_exponential_overflows():
    verdict = finiteness(Of(lambda x: torch.where(torch.arange(5).view(1, 5, 1) == 3, x.exp(), x)), X)
    assert not verdict
    assert verdict.witness.startswith("output 3 (row 0) is inf for inputs of size 1e4")


def test_a_division_by_a_tiny_norm_is_found():
    verdict = finiteness(Of(lambda x: x / x.square().mean(-1, keepdim=True).sqrt()), X)
    assert verdict.witness.endswith("for inputs of size 1e-30")


def test_a_gradient_at_zero_is_found():
    verdict = finiteness(Of(lambda x: x.norm(dim=-1, keepdim=True).add(x).abs().sqrt()), X)
    assert not verdict
    assert verdict.witness == "the gradient by the input is NaN for zeros"


def test_tokens_are_taken_as_they_are():
    assert finiteness(nn.Embedding(5, 4), Example.tokens(2, 3, vocab=5)).outcome == "holds"
