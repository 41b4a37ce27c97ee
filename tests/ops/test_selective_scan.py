"""The selective scan: kernel, chunks and equation agree, whatever the length, the state and the rule."""

import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import PRECISION, agree
from wonderland.core import WonderlandError
from wonderland.ops import native
from wonderland.ops.selective_scan import RULES, chunked, reference, selective_scan
from wonderland.ops.steps import discretise

FORMS = (reference, selective_scan, chunked)


def inputs(t, d, n, dtype, *, state, ragged, gate=True):
    def new(*shape):
        return torch.randn(shape, dtype=dtype, requires_grad=True)

    u, delta, b, c = new(3, t, d), new(3, t, d), new(3, t, n), new(3, t, n)
    a = (-3 * torch.rand(d, n, dtype=dtype) - 0.01).requires_grad_()
    options = {"skip": new(d), "gate": new(3, t, d) if gate else None, "state": new(3, n, d) if state else None}
    leaves = [u, delta, a, b, c, *(x for x in options.values() if x is not None)]
    options["lengths"] = torch.tensor([t, t // 2, 0]) if ragged else None
    return (u, delta, a, b, c), options, leaves


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("t", "d", "n"), [(1, 3, 1), (7, 19, 4), (37, 5, 2), (64, 8, 3)])
def test_all_forms_agree(t, d, n, rule, dtype):
    arrays, options, leaves = inputs(t, d, n, dtype, state=True, ragged=True)
    agree([lambda form=form: form(*arrays, rule=rule, **options) for form in FORMS], leaves, 10 * PRECISION[dtype])


@given(st.integers(1, 50), st.integers(1, 20), st.integers(1, 5), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_all_forms_agree_at_any_size(t, d, n, state, ragged, gate):
    arrays, options, leaves = inputs(t, d, n, torch.float64, state=state, ragged=ragged, gate=gate)
    agree([lambda form=form: form(*arrays, **options) for form in FORMS], leaves, 1e-9)


def test_chunks_longer_than_a_span_agree():
    arrays, options, leaves = inputs(600, 2, 1, torch.float64, state=True, ragged=False)
    agree([lambda form=form: form(*arrays, **options) for form in FORMS], leaves, 1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_beyond_a_length_is_read(form):
    arrays, options, _ = inputs(6, 3, 2, torch.float64, state=False, ragged=False)
    short = [x if x.dim() == 2 else torch.cat([x[:, :4], torch.full_like(x[:, 4:], torch.nan)], 1) for x in arrays]
    gate = torch.cat([options["gate"][:, :4], torch.full_like(options["gate"][:, 4:], torch.nan)], 1)
    y, state = form(*short, skip=options["skip"], gate=gate, lengths=torch.tensor([4, 4, 4]))
    expected, last = form(*(x if x.dim() == 2 else x[:, :4] for x in arrays), skip=options["skip"], gate=gate[:, :4])
    assert torch.allclose(y, torch.cat([expected, torch.zeros_like(y[:, 4:])], 1))
    assert torch.allclose(state, last)


def test_the_kernel_is_what_runs():
    assert native.available(), native.status()


def test_constant_maps_are_a_time_invariant_state_space():
    t, d, n = 9, 2, 3
    u = torch.randn(1, t, d, dtype=torch.float64)
    a = -torch.rand(d, n, dtype=torch.float64)
    b, c = torch.randn(n, dtype=torch.float64), torch.randn(n, dtype=torch.float64)
    step = torch.full((d,), 0.3, dtype=torch.float64)
    raw = torch.log(torch.expm1(step)).expand(1, t, d)
    y, _ = selective_scan(u, raw, a, b.expand(1, t, n), c.expand(1, t, n))
    decay, weight = discretise(step.unsqueeze(1), a, "euler")
    powers = decay.unsqueeze(2) ** torch.arange(t, dtype=torch.float64)
    kernel = torch.einsum("n,dn,dnt->dt", b * c, weight, powers)
    expected = F.conv1d(F.pad(u.mT, (t - 1, 0)), kernel.flip(1).unsqueeze(1), groups=d).mT
    assert torch.allclose(y, expected)


def test_a_scalar_state_with_complementary_weights_is_a_gated_recurrence():
    # By the hold rule with A = -1, decay = 1 - weight: the state is a gate's mixture of old and new.
    u, raw = torch.randn(1, 6, 1, dtype=torch.float64), torch.randn(1, 6, 1, dtype=torch.float64)
    ones = torch.ones(1, 6, 1, dtype=torch.float64)
    y, _ = selective_scan(u, raw, -torch.ones(1, 1, dtype=torch.float64), ones, ones, rule="hold")
    gate, s = 1 - torch.exp(-F.softplus(raw)), torch.zeros(1, 1, dtype=torch.float64)
    for i in range(6):
        s = (1 - gate[:, i]) * s + gate[:, i] * u[:, i]
        assert torch.allclose(y[:, i], s)


def test_memory_of_the_backward_pass_is_one_state_in_sixteen():
    from wonderland.ops.selective_scan import _forward

    u = torch.randn(1, 64, 8)
    maps = torch.randn(1, 64, 4)
    saved = _forward(u, u, -torch.ones(4, 8), maps, maps, None, None, None, None, 0, True)[2]
    assert saved.shape == (1, 4, 4, 8)


def test_an_unknown_rule_is_named():
    arrays, _, _ = inputs(2, 2, 1, torch.float32, state=False, ragged=False)
    message = "A selective scan has the rules euler, hold, bilinear, not 'zoh'."
    with pytest.raises(WonderlandError, match=re.escape(message)):
        selective_scan(*arrays, rule="zoh")


@pytest.mark.parametrize("a", [0.0, 1e-8, -1e-6, 1e-4, -0.02, -0.06])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_hold_of_slow_states_is_the_same_in_all_forms(a, dtype):
    u, delta = torch.randn(2, 1, 5, 2, dtype=dtype).requires_grad_()
    b, c = torch.randn(2, 1, 5, 3, dtype=dtype).requires_grad_()
    rates = torch.full((2, 3), a, dtype=dtype, requires_grad=True)
    agree(
        [lambda form=form: form(u, delta, rates, b, c, rule="hold") for form in (reference, chunked, selective_scan)],
        [u, delta, rates, b, c],
        PRECISION[dtype],
    )
