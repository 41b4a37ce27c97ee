"""The single gate of Li-GRU, in the book's polarity."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.ligru import LiGRU, binarity
from wonderland.nn.mixers.rnn import RNN


def shut(mixer, value):
    with torch.no_grad():
        mixer.bias[: mixer.state_size] = value
    return mixer


def test_a_closed_gate_keeps_the_state_and_passes_gradients_unchanged():
    """T13-07: the state is constant, and its Jacobian the identity."""
    mixer = shut(LiGRU(4, activation="identity").double(), -1e3)
    start = torch.randn(1, 4, dtype=torch.float64, requires_grad=True)
    _, (last, _) = mixer.stream(torch.randn(1, 9, 4, dtype=torch.float64), (start, torch.zeros(1, dtype=torch.int64)))
    torch.testing.assert_close(last, start)
    jacobian = torch.stack([torch.autograd.grad(last[0, i], start, retain_graph=True)[0][0] for i in range(4)])
    torch.testing.assert_close(jacobian, torch.eye(4, dtype=torch.float64))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_an_open_gate_makes_the_plain_layer(activation):
    mixer, plain = shut(LiGRU(4, activation=activation), 1e3), RNN(4, activation=activation)
    with torch.no_grad():
        plain.weight_input.copy_(mixer.weight_input[4:])
        plain.weight_state.copy_(mixer.weight_state[4:])
        plain.bias.copy_(mixer.bias[4:])
    x = torch.randn(2, 6, 4)
    torch.testing.assert_close(mixer(x), plain(x))


def test_an_open_gate_without_activation_makes_a_linear_layer():
    mixer = shut(LiGRU(4, activation="identity").double(), 1e3)
    with torch.no_grad():
        mixer.bias[4:] = 0
    x, z = torch.randn(2, 2, 6, 4, dtype=torch.float64)
    torch.testing.assert_close(mixer(2 * x + 3 * z), 2 * mixer(x) + 3 * mixer(z))


def test_states_are_convex_combinations_by_the_gates_returned():
    mixer = LiGRU(4, state_size=5)
    x = torch.randn(2, 6, 4)
    gates, (states, _) = mixer.gates(x), mixer.states(x, None, None)
    before = torch.nn.functional.pad(states[:, :-1], (0, 0, 1, 0))
    new = torch.tanh(x @ mixer.weight_input[5:].T + before @ mixer.weight_state[5:].T + mixer.bias[5:])
    torch.testing.assert_close(states, gates * new + (1 - gates) * before)


def test_gates_are_zero_where_there_is_no_token():
    mixer = LiGRU(4)
    mask = torch.tensor([[True, True, False]])
    gates = mixer.gates(torch.randn(1, 3, 4), mask)
    assert (gates[:, 2] == 0).all()
    assert (gates[:, :2] > 0).all()


def test_gates_of_a_wrong_input_are_told_so():
    with pytest.raises(WonderlandError) as error:
        LiGRU(4).gates(torch.randn(3, 5))
    assert str(error.value) == (
        "LiGRU takes a tensor (batch, time, 4) with at least one row and one position, not one of shape (3, 5)."
    )


def test_the_penalty_drives_gates_to_decide():
    mixer = LiGRU(4)
    x = torch.randn(8, 6, 4)
    optimizer = torch.optim.Adam(mixer.parameters(), 0.05)
    before = binarity(mixer.gates(x)).item()
    for _ in range(60):
        optimizer.zero_grad()
        binarity(mixer.gates(x)).backward()
        optimizer.step()
    assert binarity(mixer.gates(x)).item() < 0.2 * before
