"""Attention over short sequences: the kernel equals the equation and torch's own, and gives way where it must."""

import inspect
import re

import pytest
import torch

from tests.ops.compare import PRECISION, agree
from wonderland.core import WonderlandError
from wonderland.ops.short_attention import longest, plain, reference, short_attention

FORMS = {"causal": {"causal": True}, "whole": {"causal": False}}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("b", "t", "heads", "kv", "d"),
    [(1, 1, 1, 1, 1), (2, 7, 2, 2, 3), (2, 37, 4, 2, 19), (1, 64, 3, 1, 32), (1, 70, 1, 1, 70), (1, 509, 2, 1, 5)],
)
def test_all_forms_agree(b, t, heads, kv, d, form, dtype):
    fused = torch.randn(b, t, (heads + 2 * kv) * d, dtype=dtype, requires_grad=True)
    forms = [
        lambda one=one: (one(fused, heads, kv, 0.3, **FORMS[form]),) for one in (reference, plain, short_attention)
    ]
    agree(forms, [fused], PRECISION[dtype])


def test_a_token_that_is_no_number_is_seen_by_no_earlier_block():
    fused = torch.randn(1, 20, 3 * 8)
    fused[0, 17] = float("nan")
    y = short_attention(fused, 1, 1, 1.0)
    assert y[0, 17:].isnan().all()
    assert not y[0, :16].isnan().any()


def test_large_scores_do_not_overflow():
    fused = 300 * torch.randn(1, 20, 3 * 16)
    assert torch.allclose(short_attention(fused, 2, 2, 1.0), reference(fused, 2, 2, 1.0), rtol=1e-4, atol=1e-2)


def test_long_sequences_go_elsewhere():
    fused = torch.randn(1, longest(True) + 1, 12)
    assert torch.allclose(short_attention(fused, 2, 2, 0.5), reference(fused, 2, 2, 0.5), atol=1e-5)


def test_second_derivatives_go_through_the_equation():
    fused = torch.randn(1, 5, 12, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: short_attention(x, 2, 2, 0.5), fused)


@pytest.mark.parametrize(
    ("shape", "heads", "kv_heads", "says"),
    [
        ((2, 5, 24), 2, 0, "short_attention takes a whole number from 1 for kv_heads, not 0."),
        ((2, 5, 24), True, 1, "short_attention takes a whole number from 1 for heads, not True."),
        (
            (2, 5, 40),
            3,
            2,
            "short_attention takes heads in groups that share keys and values: 3 heads cannot share 2.",
        ),
        (
            (2, 5, 25),
            2,
            2,
            "short_attention takes queries, keys and values side by side in fused, 2 + 2 x 2 = 6 vectors of one width, and "
            "25 is no multiple of 6.",
        ),
        ((5, 24), 2, 2, "short_attention takes fused of shape (b, t, width), not (5, 24)."),
        ((2, 0, 24), 2, 2, "short_attention takes at least one of everything in fused, not the shape (2, 0, 24)."),
    ],
)
def test_what_does_not_fit_is_told(shape, heads, kv_heads, says):
    with pytest.raises(WonderlandError, match="^" + re.escape(says) + "$"):
        inspect.unwrap(short_attention)(torch.randn(shape), heads, kv_heads, 0.5)
