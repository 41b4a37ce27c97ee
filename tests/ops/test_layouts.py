"""How numbers lie in memory changes no answer: strided, expanded, and axes of one entry with a stride of their own."""

import importlib

import pytest
import torch

from wonderland import nn
from wonderland.ops import native

scan = importlib.import_module("wonderland.ops.selective_scan")
convolution = importlib.import_module("wonderland.ops.short_convolution")


@pytest.mark.parametrize("shape", [(3, 1, 5), (1, 3, 5), (3, 4, 1), (1, 1, 4), (2, 0, 3), (0, 2, 3)])
def test_lined_rows_have_one_distance(shape):
    b, t, d = shape
    time_first = torch.randn(t, b, d).transpose(0, 1)
    part = torch.randn(b, t, d + 2)[..., :d]
    for x in (time_first, part, time_first[:, :1] if t else time_first, torch.randn(d, t, b).permute(2, 1, 0)):
        found = native.evenly_spaced(x)
        torch.testing.assert_close(found, x)
        if x.numel():
            assert x.shape[2] == 1 or found.stride(2) == 1
            assert x.shape[0] == 1 or found.stride(0) == x.shape[1] * found.stride(1)


@pytest.mark.parametrize("vector", [torch.tensor(1.5).expand(3), torch.randn(6)[::2]])
def test_vectors_with_gaps(vector):
    u, delta = torch.randn(2, 2, 5, 3)
    b, c = torch.randn(2, 2, 5, 4)
    a = -torch.rand(3, 4)
    torch.testing.assert_close(
        scan.selective_scan(u, delta, a, b, c, skip=vector)[0], scan.reference(u, delta, a, b, c, skip=vector)[0]
    )
    weight = torch.randn(3, 4)
    torch.testing.assert_close(
        convolution.short_convolution(u, weight, vector), convolution.reference(u, weight, vector)
    )


@pytest.mark.parametrize("mixer", [nn.CausalConvolution(8, depthwise=True), nn.CausalConvolution(8), nn.Mamba(8)])
def test_tokens_of_time_first_data_stream_one_by_one(mixer):
    x, state, found = torch.randn(4, 3, 8).transpose(0, 1), None, []
    for i in range(4):
        y, state = mixer.stream(x[:, i : i + 1], state)
        found.append(y)
    torch.testing.assert_close(torch.cat(found, 1), mixer(x), rtol=1e-4, atol=1e-5)


def test_what_lies_beyond_a_row_reaches_no_slope_in_plain_torch():
    u, delta = torch.randn(2, 1, 5, 3)
    b, c = torch.randn(2, 1, 5, 4)
    delta[:, 3:] = float("nan")
    given = [value.requires_grad_() for value in (u, delta, -torch.rand(3, 4), b, c)]
    y, last = scan.chunked(*given, lengths=torch.tensor([3]))
    for slope in torch.autograd.grad(y.sum() + last.sum(), given):
        assert slope.isfinite().all()
