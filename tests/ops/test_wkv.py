"""The weighted average of RWKV: kernel, chunks and equation agree, and large exponents do no harm."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import PRECISION, agree
from wonderland.ops.wkv import chunked, reference, wkv

FORMS = (reference, wkv, chunked)


def inputs(t, d, dtype, *, state, ragged, scale=1.0):
    k = (scale * torch.randn(3, t, d, dtype=dtype)).requires_grad_()
    v = torch.randn(3, t, d, dtype=dtype, requires_grad=True)
    decay = (-2 * torch.rand(d, dtype=dtype)).requires_grad_()
    bonus = torch.randn(d, dtype=dtype, requires_grad=True)
    leaves = [k, v, decay, bonus]
    options = {"lengths": torch.tensor([t, t // 2, 0]) if ragged else None}
    if state:
        sums = torch.stack([torch.randn(3, d, dtype=dtype), torch.rand(3, d, dtype=dtype) + 0.1], 1).requires_grad_()
        options["state"] = (sums, torch.randn(3, d, dtype=dtype))
        leaves.append(sums)
    return leaves[:4], options, leaves


def flat(form, arrays, options):
    y, (sums, _) = form(*arrays, **options)
    return y, sums


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize(("t", "d"), [(1, 3), (7, 19), (16, 4), (37, 5)])
def test_all_forms_agree(t, d, scale, dtype):
    arrays, options, leaves = inputs(t, d, dtype, state=True, ragged=True, scale=scale)
    agree([lambda form=form: flat(form, arrays, options) for form in FORMS], leaves, 10 * PRECISION[dtype])


@given(st.integers(1, 50), st.integers(1, 20), st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_all_forms_agree_at_any_size(t, d, state, ragged):
    arrays, options, leaves = inputs(t, d, torch.float64, state=state, ragged=ragged)
    agree([lambda form=form: flat(form, arrays, options) for form in FORMS], leaves, 1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_it_is_the_weighted_average_of_the_definition(form):
    (k, v, decay, bonus), _, _ = inputs(6, 2, torch.float64, state=False, ragged=False)
    y, _ = form(k, v, decay, bonus)
    for i in range(6):
        exponents = torch.stack([k[:, j] + (i - 1 - j) * decay for j in range(i)] + [k[:, i] + bonus])
        weights = torch.softmax(exponents, 0)
        expected = (weights * torch.stack([v[:, j] for j in range(i + 1)])).sum(0)
        assert torch.allclose(y[:, i], expected)


@pytest.mark.parametrize("form", FORMS)
def test_exponents_of_a_thousand_stay_finite(form):
    k = torch.tensor([1000.0, -1000.0, 1000.0]).view(1, 3, 1)
    y, (sums, top) = form(k, torch.ones(1, 3, 1), torch.zeros(1), torch.zeros(1))
    assert torch.allclose(y, torch.ones(1, 3, 1))
    assert sums.isfinite().all()
    assert top.isfinite().all()


def test_without_decay_and_bonus_it_is_a_running_average():
    v = torch.randn(1, 5, 2)
    zero = torch.zeros(2)
    y, _ = wkv(torch.zeros(1, 5, 2), v, zero, zero)
    assert torch.allclose(y, v.cumsum(1) / torch.arange(1, 6).view(1, 5, 1))


@pytest.mark.parametrize("form", FORMS)
def test_one_token_has_a_gradient_of_zero_for_the_decay_in_every_form(form):
    k, v, decay, bonus = inputs(1, 3, torch.float64, state=False, ragged=False)[0][:4]
    form(k, v, decay, bonus)[0].sum().backward()
    assert torch.equal(decay.grad, torch.zeros_like(decay))
