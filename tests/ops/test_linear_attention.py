"""Linear attention: chunks equal the equation in values and every gradient."""

import sys

import pytest
import torch

from tests.ops.compare import PRECISION, agree
from wonderland.ops.linear_attention import linear_attention, reference


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("t", [1, 2, 7, 13, 64])
def test_both_forms_agree(t, state, dtype, monkeypatch):
    monkeypatch.setattr(sys.modules[linear_attention.__module__], "STEPS", 5)

    def new(*shape):
        return torch.randn(shape, dtype=dtype, requires_grad=True)

    q, k, v = new(2, 3, t, 4), new(2, 3, t, 4), new(2, 3, t, 5)
    first = new(2, 3, 4, 5) if state else None
    leaves = [x for x in (q, k, v, first) if x is not None]
    agree([lambda form=form: form(q, k, v, first) for form in (reference, linear_attention)], leaves, PRECISION[dtype])


def test_second_derivatives_are_those_of_the_equation():
    q = torch.randn(1, 1, 6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: linear_attention(x, x, x)[0], (q,))
