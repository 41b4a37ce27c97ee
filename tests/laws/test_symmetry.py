"""Permutation, shift and scale symmetries."""

import pytest
import torch
from torch import nn

from tests.laws.toys import Convolution
from wonderland.laws import (
    Example,
    permutation_equivariance,
    permutation_invariance,
    scale_invariance,
    shift_equivariance,
)

X = Example.floats(2, 9, 4)


class Marked(nn.Module):
    """One position is treated in a way of its own."""

    def __init__(self, place: int):
        super().__init__()
        self.place = place

    def forward(self, x):
        return x * (1 + (torch.arange(x.shape[1]) == self.place)).view(1, -1, 1)


class Sum(nn.Module):
    def forward(self, x):
        return x.sum(1)


def test_a_pointwise_block_follows_its_inputs():
    assert permutation_equivariance(nn.Linear(4, 4), X).outcome == "holds"
    assert permutation_equivariance(nn.Linear(4, 4), Example.floats(2, 1, 4)).witness == "one position has one order"


@pytest.mark.parametrize("place", [0, 3, 8])
def test_a_marked_position_is_named(place):
    verdict = permutation_equivariance(Marked(place), X)
    assert not verdict
    pairs = {f"inputs {first} and {first + 1} changed places" for first in (place - 1, place)}
    assert any(pair in verdict.witness for pair in pairs)


def test_a_sum_does_not_see_order_and_a_weighted_sum_does():
    assert permutation_invariance(Sum(), X).outcome == "holds"
    verdict = permutation_invariance(nn.Sequential(Marked(8), Sum()), X)
    assert not verdict
    assert verdict.witness.endswith("when inputs 7 and 8 changed places")
    assert verdict.witness.startswith("the output (row ")


@pytest.mark.parametrize("causal", [True, False])
def test_convolutions_follow_a_delay(causal):
    assert shift_equivariance(Convolution(4, 3, causal=causal), X).outcome == "holds"
    deep = nn.Sequential(Convolution(4, 3, causal=causal), Convolution(4, 3, causal=causal))
    deep.receptive_field = (4, 0) if causal else (2, 2)
    assert shift_equivariance(deep, X).outcome == "holds"


def test_a_linear_state_space_follows_a_delay():
    class Leaky(nn.Module):
        def forward(self, x):
            decay = 0.9 ** (torch.arange(x.shape[1]).view(-1, 1) - torch.arange(x.shape[1])).to(x)
            return decay.tril() @ x

    assert shift_equivariance(Leaky(), X).outcome == "holds"


def test_positions_and_strides_break_a_delay():
    verdict = shift_equivariance(Marked(3), X)
    assert not verdict
    assert "output 3 (row" in verdict.witness or "output 2 (row" in verdict.witness
    assert "when the input is delayed by" in verdict.witness

    class Stride(nn.Module):
        def forward(self, x):
            return x[:, ::2]

    verdict = shift_equivariance(Stride(), X)
    assert verdict.witness == "a delay of 1 along time gives 5 outputs where 5 and 1 more belong"


def test_images_are_delayed_along_height_and_width():
    example = Example.floats(1, 2, 6, 6, axes=("batch", None, "height", "width"))
    assert shift_equivariance(nn.Conv2d(2, 2, 3, padding=1), example).outcome == "holds"

    class Columns(nn.Module):
        def forward(self, x):
            return x * torch.arange(x.shape[3])

    verdict = shift_equivariance(Columns(), example)
    assert "along width" in verdict.witness


def test_a_field_wider_than_the_input_leaves_nothing_to_see():
    verdict = shift_equivariance(Convolution(4, 12), X)
    assert verdict.witness == "no output has its receptive field inside the 9 positions"


def test_a_norm_does_not_see_size_and_a_matrix_does():
    assert scale_invariance(nn.LayerNorm(4), X).outcome == "holds"
    verdict = scale_invariance(nn.Linear(4, 4), X)
    assert not verdict
    assert verdict.witness.endswith("at 1000 times the input")
    assert scale_invariance(nn.Embedding(5, 4), Example.tokens(2, 3, vocab=5)).witness == "tokens have no size"
