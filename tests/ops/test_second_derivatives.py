"""Kernels can be differentiated twice: a backward pass in a graph goes through the equation."""

import pytest
import torch

from wonderland.ops.online_softmax import attention
from wonderland.ops.rms_norm import rms_norm
from wonderland.ops.scan import linear_scan
from wonderland.ops.selective_scan import chunked, selective_scan
from wonderland.ops.short_convolution import short_convolution
from wonderland.ops.squared_relu import squared_relu
from wonderland.ops.wkv import wkv


def new(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


CASES = {
    "linear_scan": (lambda a, x, s: linear_scan(a, x, s), lambda: (new(2), new(1, 4, 2), new(1, 2))),
    "linear_scan, ragged": (
        lambda a, x: linear_scan(a, x, lengths=torch.tensor([4, 2])),
        lambda: (new(2, 4, 2), new(2, 4, 2)),
    ),
    "selective_scan": (
        lambda u, d, a, b, c, gate, s: selective_scan(u, d, -a.exp(), b, c, gate=gate, state=s),
        lambda: (new(1, 3, 2), new(1, 3, 2), new(2, 2), new(1, 3, 2), new(1, 3, 2), new(1, 3, 2), new(1, 2, 2)),
    ),
    "short_convolution": (
        lambda x, w, b: short_convolution(x, w, b, silu=True),
        lambda: (new(1, 4, 2), new(2, 3), new(2)),
    ),
    "selective_scan, plain": (
        lambda u, d, a, b, c: chunked(u, d, -a.exp(), b, c),
        lambda: (new(1, 3, 2), new(1, 3, 2), new(2, 2), new(1, 3, 2), new(1, 3, 2)),
    ),
    "attention": (
        lambda q, k, v: attention(q, k, v, causal=True),
        lambda: (new(1, 1, 3, 2), new(1, 1, 3, 2), new(1, 1, 3, 2)),
    ),
    "wkv": (lambda k, v, w, u: wkv(k, v, -w.exp(), u)[0], lambda: (new(1, 4, 2), new(1, 4, 2), new(2), new(2))),
    "squared_relu": (squared_relu, lambda: (new(3, 4),)),
    "rms_norm": (lambda x, gain: rms_norm(x, gain, 1e-3), lambda: (new(3, 4), new(4))),
}


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_can_be_differentiated_twice(name):
    function, inputs = CASES[name]
    assert torch.autograd.gradgradcheck(function, inputs())
