"""The Elman layer and how gradients travel back through it."""

import torch
from torch import nn

from wonderland.nn.mixers.rnn import RNN


def test_a_loop_over_a_cell_gives_the_layer():
    """Box C.13.1 of the book."""
    cell, mixer = nn.RNNCell(5, 5), RNN(5)
    with torch.no_grad():
        cell.weight_ih.copy_(mixer.weight_input)
        cell.weight_hh.copy_(mixer.weight_state)
        cell.bias_ih.copy_(mixer.bias)
        cell.bias_hh.zero_()
    x = torch.randn(2, 7, 5)
    s = torch.zeros(2, 5)
    states = []
    for i in range(x.shape[1]):
        s = cell(x[:, i, :], s)
        states.append(s)
    torch.testing.assert_close(mixer(x), torch.stack(states, 1))


def test_readout_adds_a_map_of_the_state_and_one_of_the_token():
    mixer = RNN(4, state_size=6, readout=True)
    x = torch.randn(2, 5, 4)
    states, _ = mixer.states(x, None, None)
    torch.testing.assert_close(mixer(x), states @ mixer.project.weight.T + x @ mixer.from_token.weight.T)


def test_backpropagation_through_time_is_the_sum_the_book_writes():
    """E.13.16-17: direct effects of A at each token, carried on by products of Jacobians, the latest on the left."""
    torch.manual_seed(1)
    e, n = 3, 6
    mixer = RNN(e, bias=False).double()
    x = torch.randn(1, n, e, dtype=torch.float64)
    a, b = mixer.weight_state.detach(), mixer.weight_input.detach()
    states, jacobians, direct = [torch.zeros(e, dtype=torch.float64)], [], []
    for i in range(n):
        s = torch.tanh(a @ states[-1] + b @ x[0, i])
        slope = torch.diag(1 - s**2)
        jacobians.append(slope @ a)
        direct.append(torch.einsum("ij,k->ijk", slope, states[-1]))  # d s_i / d A, the state before held fixed
        states.append(s)
    total, carried = torch.zeros(e, e, e, dtype=torch.float64), torch.eye(e, dtype=torch.float64)
    for i in reversed(range(n)):
        total += torch.einsum("ij,jkl->ikl", carried, direct[i])
        carried = carried @ jacobians[i]
    last = mixer(x)[0, -1]
    found = torch.stack([torch.autograd.grad(last[i], mixer.weight_state, retain_graph=True)[0] for i in range(e)])
    torch.testing.assert_close(found, total, rtol=0, atol=1e-12)
