"""Kernels read memory by the sizes they are told, so ops refuse what does not agree, in a sentence."""

import inspect
from functools import partial

import pytest
import torch

from wonderland import ops
from wonderland.core import WonderlandError
from wonderland.ops import scan, shapes
from wonderland.ops.fused_mlp_block import fused_mlp_block
from wonderland.ops.gelu import gelu
from wonderland.ops.layer_norm import layer_norm
from wonderland.ops.rms_norm import rms_norm
from wonderland.ops.squared_relu import squared_relu

r = torch.randn
X, D, N = r(2, 5, 4), r(4), r(2, 5, 3)
HEADS = r(2, 2, 5, 3)
SCAN, WKV, MAMBA, SHORT, FFT, LINEAR, SOFT, MASKED, LAYER, RMS = (
    # Under test the annotations would speak first; in use they do not.
    inspect.unwrap(op)
    for op in (
        ops.linear_scan, ops.wkv, ops.selective_scan, ops.short_convolution, ops.fft_convolution, ops.linear_attention,
        ops.attention, ops.masked_softmax, ops.recurrence, rms_norm,
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: SCAN(r(3), X), "linear_scan takes a of shape (d,) = (4,), not (3,)."),
        (lambda: SCAN(r(2, 4, 4), X), "linear_scan takes a of shape (b, t, d) = (2, 5, 4), not (2, 4, 4)."),
        (lambda: SCAN(D, X, r(3, 4)), "linear_scan takes state of shape (b, d) = (2, 4), not (3, 4)."),
        (lambda: SCAN(D, X[0]), "linear_scan takes x of shape (b, t, d), not (5, 4)."),
        (lambda: SCAN(D, X[:, :0]), "linear_scan takes at least one of everything in x, not the shape (2, 0, 4)."),
        (lambda: SCAN(D, X.long()), "linear_scan takes floating point numbers for x, not torch.int64."),
        (lambda: SCAN([1.0], X), "linear_scan takes a tensor for a, not a list."),
        (
            lambda: SCAN(D.to("meta"), X),
            "linear_scan takes tensors on one device: x is on cpu and a on meta.",
        ),
        (
            lambda: SCAN(D, X, lengths=torch.tensor([1.0, 2.0])),
            "linear_scan takes lengths as whole numbers of shape (2,), not torch.float32 (2,).",
        ),
        (
            lambda: SCAN(D, X, lengths=torch.tensor([1, 2, 3])),
            "linear_scan takes lengths as whole numbers of shape (2,), not torch.int64 (3,).",
        ),
        (
            lambda: SCAN(D, X, lengths=[1, 2]),
            "linear_scan takes lengths as whole numbers of shape (2,), not list.",
        ),
        (
            lambda: SCAN(D, X, lengths=torch.tensor([1, 6])),
            "linear_scan takes lengths from 0 to 5, the number of steps, not 6.",
        ),
        (lambda: WKV(X, r(2, 4, 4), D, D), "wkv takes v of shape (b, t, d) = (2, 5, 4), not (2, 4, 4)."),
        (lambda: WKV(X, X, r(1), D), "wkv takes decay of shape (d,) = (4,), not (1,)."),
        (
            lambda: WKV(X, X, D, D, state=(r(2, 1, 4), r(2, 4))),
            "wkv takes sums of shape (b, 2, d) = (2, 2, 4), not (2, 1, 4).",
        ),
        (
            lambda: WKV(X, X, D, D, state=(X,)),
            "wkv takes a state of two tensors, the sums (b, 2, d) and their exponent (b, d).",
        ),
        (
            lambda: WKV(X, X, D, D, lengths=torch.tensor([-1, 2])),
            "wkv takes lengths from 0 to 5, the number of steps, not -1.",
        ),
        (lambda: MAMBA(X, X, r(3, 4), N, N), "selective_scan takes a of shape (d, n) = (4, n), not (3, 4)."),
        (lambda: MAMBA(X, X, r(4, 3), N, X), "selective_scan takes c of shape (b, t, n) = (2, 5, 3), not (2, 5, 4)."),
        (
            lambda: MAMBA(X, X, r(4, 3), N, N, state=r(2, 4, 3)),
            "selective_scan takes state of shape (b, n, d) = (2, 3, 4), not (2, 4, 3).",
        ),
        (
            lambda: MAMBA(X, X, r(4, 3), N, N, gate=N),
            "selective_scan takes gate of shape (b, t, d) = (2, 5, 4), not (2, 5, 3).",
        ),
        (lambda: SHORT(X, r(3, 4)), "short_convolution takes weight of shape (d, w) = (4, w), not (3, 4)."),
        (lambda: SHORT(X, r(4, 0)), "short_convolution takes a weight (d, w) with at least one tap."),
        (
            lambda: SHORT(X, r(4, 3), tail=r(2, 3, 4)),
            "short_convolution takes tail of shape (b, 2, d) = (2, 2, 4), not (2, 3, 4).",
        ),
        (lambda: FFT(X, r(3, 1)), "fft_convolution takes kernel of shape (k, d) = (3, 4), not (3, 1)."),
        (
            lambda: LINEAR(HEADS, HEADS[:, :, 1:], HEADS),
            "linear_attention takes k of shape (b, h, t, k) = (2, 2, 5, 3), not (2, 2, 4, 3).",
        ),
        (
            lambda: SOFT(HEADS, HEADS[:, :, :0], HEADS[:, :, :0]),
            "attention takes at least one of everything in k, not the shape (2, 2, 0, 3).",
        ),
        (
            lambda: SOFT(HEADS, HEADS, HEADS, mask=torch.ones(5, 5)),
            "attention takes a mask of booleans that broadcasts to (2, 2, 5, 5), not torch.float32 (5, 5).",
        ),
        (
            lambda: SOFT(HEADS, HEADS, HEADS, bias=r(5, 4)),
            "attention takes a bias of floating point numbers that broadcasts to (2, 2, 5, 5), not torch.float32 (5, 4).",
        ),
        (
            lambda: MASKED(X, torch.ones(2, 5, 4)),
            "masked_softmax takes a mask of booleans that broadcasts to the scores (2, 5, 4), not torch.float32 (2, 5, 4).",
        ),
        (
            lambda: LAYER("lstm", X, r(16, 4), r(16, 4), None, (r(2, 4),)),
            "lstm takes a state of 2 tensors, not of 1.",
        ),
        (
            lambda: LAYER("rnn_tanh", X, r(8, 4), r(8, 4), None, (r(2, 4),)),
            "rnn_tanh takes weight_state of shape (4, e) = (4, 4), not (8, 4).",
        ),
        (
            lambda: LAYER("rnn_tanh", X, r(8, 4), r(4, 4), None, (r(2, 4),)),
            "rnn_tanh takes weight_input of shape (4, d) = (4, 4), not (8, 4).",
        ),
        (
            lambda: inspect.unwrap(layer_norm)(X, r(3), None, 1e-5),
            "layer_norm takes rows (..., d) and a gain (d,), not (2, 5, 4) and (3,).",
        ),
        (
            lambda: inspect.unwrap(layer_norm)(X, D, [1.0], 1e-5),
            "layer_norm takes rows (..., d) and a shift (d,), not (2, 5, 4) and a list.",
        ),
        (
            lambda: inspect.unwrap(fused_mlp_block)(X, D, None, r(3, 4), None, r(4, 2), None, eps=1e-5),
            "fused_mlp_block takes outward of shape (d, h) = (4, 3), not (4, 2).",
        ),
        (
            lambda: inspect.unwrap(fused_mlp_block)(
                X, D, None, r(3, 4), None, r(4, 3), None, eps=1e-5, activation="gelo"
            ),
            "fused_mlp_block has no activation 'gelo'. Did you mean 'gelu'? "
            "Known are identity, relu, squared_relu, sigmoid, silu, tanh, gelu, gelu_tanh.",
        ),
        (
            lambda: inspect.unwrap(fused_mlp_block)(torch.tensor(1.0), D, None, D, None, D, None, eps=0.0),
            "fused_mlp_block takes a tensor (..., d) for x, not a number.",
        ),
        (lambda: RMS(X, r(3), 1e-6), "rms_norm takes rows (..., d) and a gain (d,), not (2, 5, 4) and (3,)."),
    ],
)
def test_what_does_not_agree_is_told(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence


@pytest.mark.parametrize("shape", [(), (1,), (5, 4), (1, 5, 4), (2, 1, 4), (2, 5, 1)])
def test_a_scan_broadcasts_its_factors(shape):
    a, x = r(shape, dtype=torch.float64, requires_grad=True), r(2, 5, 4, dtype=torch.float64)
    found, expected = SCAN(a, x), scan.reference(a.expand(2, 5, 4), x)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        *(torch.autograd.grad(one.square().sum(), a, retain_graph=True)[0] for one in (found, expected))
    )


def test_lengths_may_lie_anywhere_in_memory_and_be_narrow():
    lengths = torch.tensor([[2, 9], [4, 9]], dtype=torch.int32)[:, 0]
    torch.testing.assert_close(SCAN(D, X, lengths=lengths), scan.reference(D, X, lengths=torch.tensor([2, 4])))
    torch.testing.assert_close(ops.wkv(X, X, -D.exp(), D, lengths=lengths)[0][0, 2:], torch.zeros(3, 4))


@pytest.mark.parametrize(
    ("op", "given", "required"),
    [
        (SCAN, (D, X), "a x"),
        (WKV, (X, X, D, D), "k v decay bonus"),
        (MAMBA, (X, X, r(4, 3), N, N), "u delta a b c"),
        (SHORT, (X, r(4, 2)), "x weight"),
        (FFT, (X, r(3, 4)), "x kernel"),
        (LINEAR, (HEADS, HEADS, HEADS), "q k v"),
        (SOFT, (HEADS, HEADS, HEADS), "q k v"),
        (inspect.unwrap(gelu), (X,), "x"),
        (inspect.unwrap(squared_relu), (X,), "x"),
        (inspect.unwrap(layer_norm), (X, D, D, 1e-5), "x"),
        (RMS, (X, D, 1e-5), "x gain"),
        (
            partial(inspect.unwrap(fused_mlp_block), eps=1e-5),
            (X, D, D, r(3, 4), r(3), r(4, 3), D),
            "x . . inward . outward .",
        ),
        (partial(LAYER, "rnn_tanh"), (X, r(4, 4), r(4, 4), D, (r(2, 4),)), "x weight_input weight_state"),
    ],
)
def test_what_is_missing_is_told(op, given, required):
    for index, name in enumerate(required.split()):
        if name == ".":
            continue
        with pytest.raises(WonderlandError, match=rf"^\w+ takes a tensor for {name}, not a NoneType\.$"):
            op(*given[:index], None, *given[index + 1 :])


def test_letters_are_counted():
    assert shapes.agree("op", x=(X, "b t d"), none=(None, "q ?"), bias=(D, "d")) == {"b": 2, "t": 5, "d": 4}


def test_complex_numbers_are_told_where_an_equation_has_none():
    z = torch.randn(1, 3, 2, dtype=torch.complex64)
    a, b = torch.randn(2, 3), torch.randn(1, 3, 3)
    for call, sentence in (
        (lambda: MAMBA(z, z, a, b, b), "selective_scan takes real floating point numbers for u"),
        (lambda: WKV(z, z, a[:, 0], a[:, 0]), "wkv takes real floating point numbers for k"),
        (lambda: SHORT(z, a), "short_convolution takes real floating point numbers for x"),
        (lambda: FFT(z, a.t()), "fft_convolution takes real floating point numbers for x"),
    ):
        with pytest.raises(WonderlandError) as told:
            call()
        assert str(told.value) == f"{sentence}, not torch.complex64."


def test_scores_of_whole_numbers_are_told():
    with pytest.raises(WonderlandError) as told:
        MASKED(torch.zeros(2, dtype=torch.int64), torch.ones(2, dtype=torch.bool))
    assert str(told.value) == "masked_softmax takes floating point scores, not torch.int64."
