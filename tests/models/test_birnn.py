import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.models import BiRNN


@pytest.mark.parametrize(("cell", "kind"), [("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn", nn.RNN)])
def test_it_is_the_books(cell, kind):
    torch.manual_seed(0)
    model = BiRNN(20, 3, dim=6, state_size=5, depth=2, cell=cell).double().eval()
    peer = kind(6, 5, num_layers=2, bidirectional=True, batch_first=True).double()
    for depth in range(2):
        model.rightward[depth].load_torch(peer, f"_l{depth}")
        model.leftward[depth].load_torch(peer, f"_l{depth}_reverse")
    tokens = torch.randint(1, 20, (4, 7))
    states = peer(model.embedding(tokens))[0]
    torch.testing.assert_close(model(tokens), model.head(torch.cat([states[:, 0], states[:, -1]], 1)))


def test_padding_on_either_side_and_an_empty_sentence():
    model = BiRNN(30, 4, dim=6, state_size=5).eval()
    row = torch.tensor([[3, 8, 2]])
    for left, right in ((0, 4), (4, 0), (2, 3)):
        torch.testing.assert_close(model(F.pad(row, (left, right))), model(row))
    torch.testing.assert_close(model(torch.zeros(1, 5, dtype=torch.int64))[0], model.head.bias)


@pytest.mark.slow
def test_it_learns_the_order_of_words():
    torch.manual_seed(0)
    tokens = torch.randint(1, 5, (128, 6))
    y = (tokens[:, 0] > tokens[:, -1]).long()
    model = BiRNN(5, 2, dim=8, state_size=8, depth=1, cell="gru", dropout=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(model(tokens), y).backward()
        optimizer.step()
    assert (model.eval()(tokens).argmax(1) == y).float().mean() > 0.95


def test_it_survives_json_and_errors_speak():
    spec = BiRNN.spec(vocab=9, classes=2, cell="gru")
    assert Spec.from_json(spec.to_json()) == spec
    for call, sentence in (
        (lambda: BiRNN(9, 1), "BiRNN needs at least two classes, not 1."),
        (lambda: BiRNN(9, 2, cell="elman"), "BiRNN has no cell 'elman': choose 'lstm', 'gru' or 'rnn'."),
        (lambda: BiRNN(9, 2, depth=0), "BiRNN needs depth to be a whole number of at least 1, not 0."),
        (
            lambda: BiRNN(9, 2)(torch.tensor([[-1]])),
            "Token -1 in row 0, position 0 is not in the vocabulary: tokens are 0 to 8.",
        ),
    ):
        with pytest.raises(WonderlandError) as caught:
            call()
        assert str(caught.value) == sentence
