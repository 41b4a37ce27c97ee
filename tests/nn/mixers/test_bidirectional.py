"""Two directions at once."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from wonderland.core import Spec, WonderlandError
from wonderland.nn.mixers.bidirectional import Bidirectional
from wonderland.nn.mixers.causal_convolution import CausalConvolution
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.mixers.lstm import LSTM


def test_both_directions_equal_torch_on_rows_of_different_lengths():
    theirs = nn.GRU(4, 4, batch_first=True, bidirectional=True)
    mixer = Bidirectional(4, mixer=GRU.spec())
    for own, ending in ((mixer.rightward, ""), (mixer.leftward, "_reverse")):
        single = nn.GRU(4, 4)
        single.load_state_dict(
            {name: getattr(theirs, name + ending) for name in single.state_dict()}  # the same names, with an ending
        )
        own.load_state_dict(GRU.from_torch(single).state_dict())
    counts = torch.tensor([5, 2, 3])
    mask = torch.arange(5) < counts.unsqueeze(1)
    x = torch.randn(3, 5, 4).masked_fill(~mask.unsqueeze(2), 0)
    packed, _ = theirs(pack_padded_sequence(x, counts, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    torch.testing.assert_close(mixer.both(x, mask), expected)
    torch.testing.assert_close(mixer(x, mask)[mask], mixer.project(expected)[mask])


@pytest.mark.parametrize("rival", [nn.RNN, nn.GRU, nn.LSTM])
def test_both_directions_come_from_torch(rival):
    theirs, x = (
        rival(4, 4, bidirectional=True, batch_first=True, bias=False, dtype=torch.float64).eval(),
        torch.randn(2, 6, 4),
    )
    mixer = Bidirectional.from_torch(theirs)
    torch.testing.assert_close(mixer.both(x.double()), theirs(x.double())[0])
    assert mixer(x.double()).shape == (2, 6, 4)
    assert not mixer.training


def test_the_two_copies_have_weights_of_their_own():
    mixer = Bidirectional(4)
    assert isinstance(mixer.rightward, LSTM)
    assert not torch.equal(mixer.rightward.weight_input, mixer.leftward.weight_input)


def test_it_is_rebuilt_from_its_spec():
    spec = Bidirectional.spec(dim=4, mixer=GRU.spec(reset="before"))
    built = Spec.from_json(spec.to_json()).build()
    assert built.leftward.cell == "gru_before"


def test_convolutions_see_as_far_to_the_right_as_to_the_left():
    assert Bidirectional(4, mixer=CausalConvolution.spec(width=3, dilation=2)).receptive_field == (4, 4)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: Bidirectional(4, mixer=LSTM(4)),
            "The mixer of a Bidirectional is a spec such as nn.LSTM.spec(), not a built LSTM.",
        ),
        (
            lambda: Bidirectional(4, mixer=Bidirectional.spec()),
            "Bidirectional takes a causal mixer; this nn.Bidirectional sees both directions already.",
        ),
        (
            lambda: Bidirectional.from_torch(nn.GRU(4, 4)),
            "Bidirectional.from_torch takes a torch.nn.RNN, GRU or LSTM of two directions, not one of one direction.",
        ),
        (
            lambda: Bidirectional.from_torch(nn.Linear(4, 4)),
            "Bidirectional.from_torch takes a torch.nn.RNN, GRU or LSTM of two directions, not a Linear.",
        ),
        (
            lambda: Bidirectional(4).stream(torch.randn(1, 2, 4)),
            "This Bidirectional is not causal, so it cannot stream: call it on the whole sequence.",
        ),
    ],
)
def test_wrong_arguments_are_told_so(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence
