"""What the gates of the LSTM do."""

import torch

from wonderland.nn.mixers.lstm import LSTM


def gates(mixer, i, f, g, o):
    """Set the biases of the four gates."""
    with torch.no_grad():
        mixer.bias.copy_(torch.tensor([i, f, g, o]).repeat_interleave(mixer.state_size))


def test_a_cell_that_forgets_nothing_and_takes_nothing_in_stays_as_it_is():
    mixer = LSTM(4)
    gates(mixer, -1e3, 1e3, 0.0, 0.0)
    start = (torch.zeros(2, 4), torch.randn(2, 4), torch.zeros(2, dtype=torch.int64))
    _, (_, cell, _) = mixer.stream(torch.randn(2, 50, 4), start)
    torch.testing.assert_close(cell, start[1])


def test_a_cell_that_forgets_everything_does_not_see_its_past():
    mixer = LSTM(4)
    gates(mixer, 0.0, -1e3, 0.0, 0.0)
    with torch.no_grad():
        mixer.weight_state.zero_()
    x = torch.randn(2, 6, 4)
    torch.testing.assert_close(mixer(x)[:, 1:], mixer(x[:, 1:]))


def test_a_new_layer_remembers():
    plain, mixer = LSTM(400, forget_bias=0.0), LSTM(400)
    assert abs(plain.bias[400:800].mean().item()) < 0.02
    assert abs(mixer.bias[400:800].mean().item() - 1) < 0.02
