"""The implicit kernel."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.long_convolution import LongConvolution
from wonderland.ops.fft_convolution import reference


def test_it_is_the_convolution_with_its_kernel():
    mixer = LongConvolution(3, length=8).double()
    x = torch.randn(2, 20, 3, dtype=torch.float64)
    torch.testing.assert_close(mixer(x), reference(x, mixer.kernel()) + mixer.skip * x)


def test_both_ways_it_sees_as_far_ahead_as_behind():
    mixer = LongConvolution(3, length=4, causal=False).double()
    x = torch.randn(2, 9, 3, dtype=torch.float64)
    kernel = mixer.kernel()
    expected = mixer.skip * x
    for offset in range(-3, 4):
        moved = torch.zeros_like(x)
        lead, lag = max(0, -offset), max(0, offset)
        moved[:, lag : 9 - lead] = x[:, lead : 9 - lag]
        expected = expected + kernel[offset + 3] * moved
    torch.testing.assert_close(mixer(x), expected)


def test_parameters_do_not_grow_with_the_length_and_the_state_is_bounded():
    short, long = LongConvolution(4, length=16), LongConvolution(4, length=512)
    count = [sum(value.numel() for value in mixer.parameters()) for mixer in (short, long)]
    assert count[0] == count[1]
    _, (past, _) = short.stream(torch.randn(1, 100, 4))
    assert past.shape == (1, 15, 4)
    assert short.state_numbers(10) == short.state_numbers(1000) == 60


def test_a_sequence_longer_than_the_kernel_is_taken():
    mixer = LongConvolution(2, length=4).double()
    x = torch.randn(1, 11, 2, dtype=torch.float64)
    torch.testing.assert_close(mixer(x)[:, 6:], mixer(x[:, 3:])[:, 3:])


def test_a_length_of_nothing_is_refused():
    with pytest.raises(WonderlandError) as error:
        LongConvolution(4, length=0)
    assert str(error.value) == "LongConvolution needs a length of at least 1, not 0."
