"""Convolution by FFT against the sum it stands for."""

import pytest
import torch

from wonderland.ops.fft_convolution import fast_length, fft_convolution, reference


@pytest.mark.parametrize("t", [1, 2, 7, 33])
@pytest.mark.parametrize("taps", [1, 2, 5, 40])
@pytest.mark.parametrize("past", [None, 1, 4, 50])
def test_fft_equals_the_direct_sum_in_values_and_gradients(t, taps, past):
    x = torch.randn(2, t, 3, dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(taps, 3, dtype=torch.float64, requires_grad=True)
    tail = None if past is None else torch.randn(2, past, 3, dtype=torch.float64, requires_grad=True)
    leaves = [x, kernel, *([] if tail is None else [tail])]
    weights = torch.randn(2, t, 3, dtype=torch.float64)
    found, expected = fft_convolution(x, kernel, tail), reference(x, kernel, tail)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    slopes = [
        torch.autograd.grad((out * weights).sum(), leaves, allow_unused=True, materialize_grads=True)
        for out in (found, expected)
    ]
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


def test_fast_lengths_have_only_small_factors_and_waste_little():
    for n in range(1, 3000):
        size = fast_length(n)
        assert n <= size <= max(1.2 * n, n + 1)
        for factor in (2, 3, 5):
            while size % factor == 0:
                size //= factor
        assert size == 1
