"""The attention block as one kernel equals its equation, and is not used where it does not fit."""

import inspect
import re

import pytest
import torch

from tests.ops.compare import PRECISION, agree
from wonderland.core import WonderlandError
from wonderland.nn import Rotary
from wonderland.ops.fused_attention_block import fused_attention_block, reference, rotary_table, rotate, usable
from wonderland.ops.short_attention import longest

FORMS = {
    "plain": {},
    "bias": {"bias": True},
    "groups": {"kv": 2},
    "one-key": {"kv": 1, "bias": True},
    "whole": {"causal": False},
    "rms": {"centred": False},
    "rotary": {"rotary": {}},
    "interleaved": {"rotary": {"layout": "interleaved"}, "kv": 2},
    "part": {"rotary": {"fraction": 0.5}, "bias": True, "centred": False},
}


def given(dtype, *, b=3, t=23, dim=12, heads=4, d=8, kv=4, bias=False, causal=True, centred=True, rotary=None):
    """Inputs and weights, the frequencies, and the settings."""
    wide = (heads + 2 * kv) * d
    shapes = [
        (b, t, dim), (dim,), (dim,) if bias else None, (wide, dim), (wide,) if bias else None, (dim, heads * d),
        (dim,) if bias else None,
    ]  # fmt: skip
    tensors = [None if shape is None else torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    frequencies = None if rotary is None else Rotary(d, **rotary).to(dtype).frequencies
    half = rotary is None or rotary.get("layout", "half") == "half"
    how = {
        "heads": heads,
        "kv_heads": kv,
        "scale": 0.3,
        "causal": causal,
        "half": half,
        "eps": 1e-5,
        "centred": centred,
    }
    return tensors, frequencies, how


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("form", FORMS)
def test_the_kernel_is_the_equation(form, dtype):
    tensors, frequencies, how = given(dtype, **FORMS[form])
    assert usable(*tensors, frequencies)
    table = None if frequencies is None else rotary_table(frequencies, tensors[0].shape[1], how["half"])
    forms = [
        lambda: (reference(*tensors, table, *how.values()),),
        lambda: (fused_attention_block(*tensors, frequencies, **how),),
    ]
    agree(forms, [tensor for tensor in tensors if tensor is not None], 10 * PRECISION[dtype])


@pytest.mark.parametrize("rotary", [{}, {"layout": "interleaved"}, {"fraction": 0.5}])
def test_queries_and_keys_rotate_as_the_position_rotates_them(rotary):
    position, x = Rotary(8, **rotary), torch.randn(2, 9, 3, 8)
    half = position.layout == "half"
    rotated = rotate(x, rotary_table(position.frequencies, 9, half), half)
    assert torch.allclose(rotated, position.rotate(x, torch.arange(9).unsqueeze(0)), atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("t", [5, 64, 200])
def test_any_number_of_threads_and_sequences_at_a_time(threads, t):
    tensors, frequencies, how = given(torch.float64, b=4, t=max(t, 16), heads=2, kv=2)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        forms = [
            lambda: (reference(*tensors, None, *how.values()),),
            lambda: (fused_attention_block(*tensors, frequencies, **how),),
        ]
        agree(forms, [tensor for tensor in tensors if tensor is not None], 1e-9)
    finally:
        torch.set_num_threads(before)


def test_second_derivatives_go_through_the_equation():
    tensors, _, how = given(torch.float64, b=2, t=32, dim=2, heads=1, d=2, kv=1)
    fixed = [None if tensor is None else tensor.detach() for tensor in tensors[1:]]
    x = torch.randn(2, 32, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: fused_attention_block(x, *fixed, None, **how), x, fast_mode=True)


def test_long_sequences_and_fewer_rows_than_threads_go_without():
    tensors, _, how = given(torch.float32, b=1, t=longest(True) + 1)
    assert not usable(*tensors)
    expected = reference(*tensors, None, *how.values())
    assert torch.allclose(fused_attention_block(*tensors, None, **how), expected, atol=1e-4)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert not usable(*given(torch.float32, b=1, t=100)[0])
    finally:
        torch.set_num_threads(before)


def test_what_does_not_fit_is_told():
    tensors, _, how = given(torch.float32)
    x, gain, shift, project, bias, out, out_bias = tensors
    each = out.shape[1] // how["heads"]
    call = inspect.unwrap(fused_attention_block)
    for run, says in (
        (lambda: call(x, None, shift, project, bias, out, out_bias, None, **how), "fused_attention_block takes a tensor for gain, not a NoneType."),
        (
            lambda: call(x, gain[:-1], shift, project, bias, out, out_bias, None, **how),
            f"fused_attention_block takes gain of shape (d,) = ({x.shape[2]},), not ({x.shape[2] - 1},).",
        ),
        (
            lambda: call(x, gain, shift, project, bias, out[:, :-1], out_bias, None, **how),
            f"fused_attention_block takes out of shape (d, {out.shape[1]}) = {tuple(out.shape)}, not ({out.shape[0]}, {out.shape[1] - 1}).",
        ),
        (
            lambda: call(x, gain, shift, project, bias, out, out_bias, torch.ones(4000), **how),
            f"fused_attention_block takes frequencies for an even number of features, at most the {each} of a head, not 4000.",
        ),
    ):  # fmt: skip
        with pytest.raises(WonderlandError, match="^" + re.escape(says) + "$"):
            run()
