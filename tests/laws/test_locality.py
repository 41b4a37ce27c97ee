"""Locality detects dependence outside the receptive field."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.toys import Convolution, Peek
from wonderland.core import WonderlandError
from wonderland.laws import Example, locality

X = Example.floats(2, 9, 4)


def test_a_kernel_that_keeps_to_its_field():
    assert locality(Convolution(4, 3), X).outcome == "holds"
    assert locality(Convolution(4, 5, causal=False), X).outcome == "holds"


def test_a_kernel_that_reaches_one_too_far():
    verdict = locality(Convolution(4, 4, field=(2, 0)), X)
    assert not verdict
    assert "output 3 moved by" in verdict.witness
    assert "when input 0 changed" in verdict.witness


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 3), st.integers(0, 3))
def test_a_look_outside_is_found_wherever_it_is(output, sees, left, right):
    block = Peek(output, sees)
    verdict = locality(block, Example(X.args, field=(left, right)))
    assert bool(verdict) == (output - left <= sees <= output + right)
    if not verdict:
        assert f"output {output} moved by" in verdict.witness
        assert f"when input {sees} changed" in verdict.witness


def test_a_side_without_limit():
    assert locality(Peek(6, 1), Example(X.args, field=(None, 0))).outcome == "holds"
    block = Peek(6, 1)
    block.receptive_field = (float("inf"), 0)
    assert locality(block, X).outcome == "holds"


def test_without_a_field_it_does_not_apply():
    verdict = locality(torch.nn.Identity(), X)
    assert verdict.witness == "the block has no receptive_field, and the example gives none"


def test_a_field_that_is_none():
    with pytest.raises(WonderlandError) as error:
        locality(torch.nn.Identity(), Example(X.args, field=3))
    assert str(error.value) == (
        "A receptive field is (positions to the left, positions to the right), None for no limit, not 3."
    )
