"""Recurrent mixers against torch.nn: outputs, last states and gradients, rows of different lengths among them."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from wonderland.core import WonderlandError
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.contract.state import detach
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.mixers.ligru import LiGRU
from wonderland.nn.mixers.lstm import LSTM
from wonderland.nn.mixers.rnn import RNN

KINDS = [(RNN, nn.RNN), (GRU, nn.GRU), (LSTM, nn.LSTM)]
NEAR = {torch.float32: 1e-5, torch.float64: 1e-10}


def biases(mixer, theirs):
    """Pairs of our bias gradients and torch's: where torch has two biases, both have the gradient of the sum."""
    pairs = [(mixer.bias.grad, theirs.bias_ih_l0.grad)]
    if mixer.bias_candidate is not None:
        pairs.append((mixer.bias_candidate.grad, theirs.bias_hh_l0.grad[-mixer.state_size :]))
    return pairs


@pytest.mark.parametrize(("kind", "rival"), KINDS)
@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("t", [1, 13])
def test_equals_torch_in_outputs_states_and_gradients(kind, rival, dtype, t):
    theirs = rival(6, 6, batch_first=True, dtype=dtype)
    mixer = kind.from_torch(theirs)
    x = torch.randn(3, t, 6, dtype=dtype, requires_grad=True)
    start = tuple(torch.randn(3, 6, dtype=dtype) for _ in mixer.layout())
    expected, last = theirs(x, tuple(one.unsqueeze(0) for one in start) if len(start) == 2 else start[0].unsqueeze(0))
    last = last if isinstance(last, tuple) else (last,)
    y, (*own, count) = mixer.stream(x, (*start, torch.zeros(3, dtype=torch.int64)))
    close = {"rtol": NEAR[dtype], "atol": NEAR[dtype]}
    torch.testing.assert_close(y, expected, **close)
    assert count.tolist() == [t] * 3
    for mine, other in zip(own, last, strict=True):
        torch.testing.assert_close(mine, other[0], **close)
    weights = torch.randn_like(y)
    (slope,) = torch.autograd.grad((expected * weights).sum(), x, retain_graph=True)
    (expected * weights).sum().backward()
    found = torch.autograd.grad((y * weights).sum(), x, retain_graph=True)[0]
    (y * weights).sum().backward()
    torch.testing.assert_close(found, slope, **close)
    for mine, other in (
        (mixer.weight_input.grad, theirs.weight_ih_l0.grad),
        (mixer.weight_state.grad, theirs.weight_hh_l0.grad),
        *biases(mixer, theirs),
    ):
        torch.testing.assert_close(mine, other, **close)


@pytest.mark.parametrize(("kind", "rival"), KINDS)
def test_rows_of_different_lengths_equal_packed_sequences(kind, rival):
    theirs = rival(6, 6, batch_first=True, dtype=torch.float64)
    mixer = kind.from_torch(theirs)
    counts = torch.tensor([3, 7, 1, 6])
    mask = torch.arange(7) < counts.unsqueeze(1)
    x = torch.randn(4, 7, 6, dtype=torch.float64)
    packed, last = theirs(pack_padded_sequence(x, counts, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    y, (*own, count) = mixer.stream(x.masked_fill(~mask.unsqueeze(2), torch.nan), None, mask)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    assert count.tolist() == counts.tolist()
    for mine, other in zip(own, last if isinstance(last, tuple) else (last,), strict=True):
        torch.testing.assert_close(mine, other[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("kind", "rival"), KINDS)
def test_weights_without_bias_come_from_torch_too(kind, rival):
    theirs = rival(4, 4, batch_first=True, bias=False)
    mixer, x = kind.from_torch(theirs), torch.randn(2, 5, 4)
    assert mixer.bias is None
    torch.testing.assert_close(mixer(x), theirs(x)[0])


def test_relu_comes_from_torch_too():
    theirs, x = nn.RNN(4, 4, batch_first=True, nonlinearity="relu"), torch.randn(2, 5, 4)
    torch.testing.assert_close(RNN.from_torch(theirs)(x), theirs(x)[0])


@pytest.mark.parametrize(("kind", "rival"), KINDS)
def test_layers_of_torch_are_blocks_of_a_stack(kind, rival):
    theirs = rival(5, 5, num_layers=3, batch_first=True)
    stack = Stack(5, 3, kind.spec())
    for index in range(3):
        stack.blocks[index] = kind.from_torch(theirs, layer=index)
    x = torch.randn(2, 7, 5)
    torch.testing.assert_close(stack(x), theirs(x)[0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: LSTM.from_torch(nn.GRU(4, 4)), "LSTM.from_torch takes a torch.nn.LSTM, not a GRU."),
        (lambda: LiGRU.from_torch(nn.GRU(4, 4)), "LiGRU.from_torch takes a torch.nn.LiGRU, not a GRU."),
        (
            lambda: GRU.from_torch(nn.GRU(4, 4, num_layers=2)),
            "This torch.nn.GRU has 2 layers: name the one to load, layer=0 to 1, and make them the blocks of a Stack.",
        ),
        (
            lambda: GRU.from_torch(nn.GRU(4, 4, num_layers=2), layer=2),
            "This torch.nn.GRU has 2 layers: name the one to load, layer=0 to 1, and make them the blocks of a Stack.",
        ),
        (
            lambda: GRU.from_torch(nn.GRU(4, 4, bidirectional=True)),
            "This torch.nn.GRU reads in two directions: say which to load, reverse=False or True, "
            "or take both with Bidirectional.from_torch.",
        ),
        (
            lambda: GRU.from_torch(nn.GRU(4, 4), reverse=True),
            "This torch.nn.GRU reads in one direction: leave reverse out.",
        ),
        (
            lambda: LSTM.from_torch(nn.LSTM(4, 4, proj_size=2)),
            "LSTM.from_torch takes no projection of the state, and this one has proj_size.",
        ),
        (
            lambda: LSTM.from_torch(nn.LSTM(3, 4)),
            "LSTM.from_torch takes equal input and hidden sizes, not 3 and 4: a mixer keeps the width.",
        ),
        (lambda: RNN(4, state_size=0), "RNN needs a state_size of at least 1, not 0."),
        (lambda: RNN(4, activation="gelu"), "RNN has no activation 'gelu': choose 'tanh' or 'relu'."),
        (lambda: GRU(4, reset="never"), "GRU has no reset 'never': choose 'after' or 'before'."),
        (
            lambda: LiGRU(4, activation="gelu"),
            "LiGRU has no activation 'gelu': choose 'tanh' or 'relu' or 'identity'.",
        ),
    ],
)
def test_wrong_arguments_are_told_so(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence


@pytest.mark.parametrize("kind", [RNN, GRU, LSTM, LiGRU])
def test_state_does_not_grow_with_the_sequence(kind):
    mixer = kind(4, state_size=6)
    numbers = {sum(value.numel() for value in mixer.stream(torch.randn(1, t, 4))[1]) for t in (1, 5, 50)}
    assert len(numbers) == 1
    assert mixer.state_numbers(1) == mixer.state_numbers(1000) == 6 * len(mixer.layout())


@pytest.mark.parametrize("kind", [RNN, GRU, LSTM, LiGRU])
def test_detached_states_cut_backpropagation_through_time(kind):
    mixer = kind(4)
    x = torch.randn(1, 8, 4, requires_grad=True)
    _, state = mixer.stream(x[:, :5])
    y, _ = mixer.stream(x[:, 5:], detach(state))
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert (slope[:, :5] == 0).all()
    assert (slope[:, 5:] != 0).all()
    torch.testing.assert_close(y, mixer(x)[:, 5:])


@pytest.mark.parametrize(("kind", "gates"), [(RNN, 1), (LiGRU, 2), (LSTM, 4)])
def test_parameters_are_as_many_as_the_books_count(kind, gates):
    assert sum(value.numel() for value in kind(5).parameters()) == gates * (5 * 5 + 5 * 5 + 5)


def test_gru_has_the_books_number_of_parameters_when_it_resets_before():
    assert sum(value.numel() for value in GRU(5, reset="before").parameters()) == 3 * (5 * 5 + 5 * 5 + 5)
    assert sum(value.numel() for value in GRU(5, reset="after").parameters()) == 3 * (5 * 5 + 5 * 5 + 5) + 5
