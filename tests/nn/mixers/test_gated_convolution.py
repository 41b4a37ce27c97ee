"""WaveNet's gate."""

import torch
import torch.nn.functional as F

from wonderland.nn.mixers.gated_convolution import GatedConvolution


def test_it_is_a_tanh_times_a_sigmoid_of_two_convolutions():
    mixer = GatedConvolution(3, dilation=2)
    x = torch.randn(2, 6, 3)
    both = F.conv1d(F.pad(x.transpose(1, 2), (2, 0)), mixer.weight, mixer.bias, dilation=2).transpose(1, 2)
    expected = mixer.project(torch.tanh(both[..., :3]) * torch.sigmoid(both[..., 3:]))
    torch.testing.assert_close(mixer(x), expected)


def test_a_closed_gate_lets_nothing_through():
    mixer = GatedConvolution(3)
    with torch.no_grad():
        mixer.bias[3:] = -1e3
        mixer.project.bias.zero_()
    assert (mixer(torch.randn(1, 5, 3)) == 0).all()
