"""Two directions at once."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from wonderland.core import Spec, WonderlandError
from wonderland.nn.bidirectional import Bidirectional
from wonderland.nn.causal_convolution import CausalConvolution
from wonderland.nn.gru import GRU
from wonderland.nn.lstm import LSTM


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
            "Bidirectional takes the spec of a mixer, like nn.LSTM.spec(), not a LSTM.",
        ),
        (
            lambda: Bidirectional(4, mixer=Bidirectional.spec()),
            "Bidirectional takes a causal mixer; this nn.Bidirectional sees both directions already.",
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
