"""Small language models: the equations, other people's layers, and the contract of streams."""

import doctest
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.models import RNNLM, NeuralNgram, Ngram, Tree
from wonderland.models.window import windows_and_targets
from wonderland.nn import rows


@pytest.mark.parametrize(("cell", "kind"), [("rnn", nn.RNN), ("gru", nn.GRU), ("lstm", nn.LSTM)])
def test_a_recurrent_model_is_the_books(cell, kind):
    torch.manual_seed(0)
    model = RNNLM(7, 5, cell=cell, depth=2).double()
    peer = kind(7, 5, num_layers=2, batch_first=True).double()
    model.load_torch(peer)
    tokens = torch.randint(7, (3, 6))
    expected = model.head(peer(F.one_hot(tokens, 7).double())[0])
    torch.testing.assert_close(model(tokens), expected)


def test_a_vector_of_ones_own_in_place_of_one_hot():
    model = RNNLM(7, 5, dim=3)
    assert model.embedding.weight.shape == (7, 3)
    assert model(torch.zeros(2, 4, dtype=torch.int64)).shape == (2, 4, 7)


def test_a_neural_n_gram_is_makemores():
    torch.manual_seed(0)
    model = NeuralNgram(9, 3, dim=4, hidden=6)
    windows = torch.randint(9, (5, 3))
    x = model.embedding.weight[windows].reshape(5, 12)
    h = torch.tanh(x @ model.inward.weight.T + model.inward.bias)
    torch.testing.assert_close(model.predict(windows), h @ model.outward.weight.T + model.outward.bias)


def test_a_tree_is_makemores_and_wavenets():
    torch.manual_seed(0)
    model = Tree(9, 3, dim=4, hidden=6)
    windows = torch.randint(9, (40, 8))
    norms = [nn.BatchNorm1d(6) for _ in range(3)]
    h = model.embedding.weight[windows]
    for joint, norm in zip(model.joints, norms, strict=True):
        h = h.reshape(40, h.shape[1] // 2, -1) @ joint.weight.T
        h = torch.tanh(norm(h.flatten(0, 1)).view_as(h))
    expected = h[:, 0] @ model.head.weight.T + model.head.bias
    torch.testing.assert_close(model.predict(windows), expected)
    model.eval()
    # In use, a text is read with all its trees at once, and before it stand as many of `begin` as it takes.
    tokens = torch.randint(9, (2, 11))
    full = torch.cat([torch.zeros(2, 8, dtype=torch.int64), tokens], 1)[:, 1:].unfold(1, 8, 1)
    torch.testing.assert_close(model(tokens), model.predict(full.flatten(0, 1)).unflatten(0, (2, 11)))


def test_bigrams_count():
    model = Ngram.count(torch.tensor([1, 2, 1, 1]), 3, 2, k=0.5)
    # Pairs: (0,1) (1,2) (2,1) (1,1)
    expected = torch.tensor([[0.5, 1.5, 0.5], [0.5, 1.5, 1.5], [0.5, 1.5, 0.5]])
    expected = expected / expected.sum(1, keepdim=True)
    torch.testing.assert_close(model.predict(torch.tensor([[0], [1], [2]])).exp(), expected)


@pytest.mark.parametrize("smoothing", ["add", "interpolate", "discount", "backoff"])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_n_grams_are_distributions_and_follow_the_counts(smoothing, order):
    text = torch.randint(5, (300,), generator=torch.Generator().manual_seed(0))
    model = Ngram.count(text, 6, order, smoothing=smoothing)
    windows = torch.cartesian_prod(*[torch.arange(6)] * max(order - 1, 1)).view(-1, max(order - 1, 1))
    chances = model.probabilities(windows)
    torch.testing.assert_close(chances.sum(1), torch.ones(len(windows)).double())
    assert (chances > 0).all()
    # Much text: all of them come to the shares that were counted.
    sure = Ngram.count(
        text.repeat(2000),
        5,
        min(order, 2),
        smoothing=smoothing,
        weights=None if smoothing != "interpolate" else [0] * min(order, 2) + [1],
    )
    plain = Ngram.count(text.repeat(2000), 5, min(order, 2), k=0)
    seen = torch.arange(5).unsqueeze(1)
    torch.testing.assert_close(sure.probabilities(seen), plain.probabilities(seen), atol=1e-3, rtol=0)


def test_discount_and_backoff_by_hand():
    text = torch.tensor([1, 2, 1, 2, 1, 0])
    for smoothing in ("discount", "backoff"):
        model = Ngram.count(text, 3, 2, smoothing=smoothing, discount=0.5, begin=0)
        # Single tokens: 0 once, 1 three times, 2 twice. After 1: 2 twice, 0 once.
        single = torch.tensor([1, 3, 2]).double()
        low = (single - 0.5) / 6 + 0.5 * 3 / 6 / 3 if smoothing == "discount" else single / 6
        taken = torch.tensor([0.5, 0, 1.5]).double() / 3
        if smoothing == "discount":
            expected = taken + 0.5 * 2 / 3 * low
        else:
            expected = taken + 0.5 * 2 / 3 * torch.tensor([0, 1, 0])
        torch.testing.assert_close(model.probabilities(torch.tensor([[1]]))[0], expected)


def test_counts_are_saved_with_the_model():
    model = Ngram.count([torch.tensor([1, 2, 0]), torch.tensor([2, 0])], 3, 3, smoothing="discount")
    spec = Ngram.spec(vocab=3, order=3, smoothing="discount", entries=model.entries)
    again = Spec.from_json(spec.to_json()).build()
    again.load_state_dict(model.state_dict())
    tokens = torch.tensor([[1, 2, 0, 2]])
    torch.testing.assert_close(again(tokens), model(tokens))


@pytest.mark.parametrize("model", [RNNLM(6, 3, cell="lstm"), Tree(6, 2, dim=2, hidden=3).eval(), NeuralNgram(6, 3)])
def test_rows_of_a_state_and_its_beginning(model):
    tokens = torch.randint(6, (3, 5))
    _, state = model.stream(tokens)
    index = torch.tensor([2, 0])
    chosen, _ = model.stream(tokens[index, :2], rows(state, index))
    torch.testing.assert_close(chosen, model.stream(tokens[:, :2], state)[0][index])
    torch.testing.assert_close(model.stream(tokens, model.start(3))[0], model(tokens))
    assert state[-1].tolist() == [5, 5, 5]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: RNNLM(6)(torch.tensor([[6]])),
            "Token 6 in row 0, position 0 is not in the vocabulary: tokens are 0 to 5.",
        ),
        (
            lambda: RNNLM(6)(torch.zeros(1, 2, dtype=torch.int64), torch.zeros(1, 2, dtype=torch.bool)),
            "RNNLM got a mask whose row 0 has no real token: leave empty sequences out of the batch.",
        ),
        (
            lambda: RNNLM(6, 4).stream(torch.zeros(1, 2, dtype=torch.int64), RNNLM(6, 3).start(1)),
            "The state does not fit this RNNLM: entry 0.0 has shape (1, 3) where (1, 4) belongs. "
            "A state belongs to the model and the batch that made it; state=None starts a new sequence.",
        ),
        (lambda: RNNLM(6, cell="qrnn"), "RNNLM has no cell 'qrnn': choose 'lstm', 'gru' or 'rnn'."),
        (
            lambda: Tree(6, 3).predict(torch.zeros(2, 5, dtype=torch.int64)),
            "Tree predicts from windows (n, 8), not (2, 5).",
        ),
        (lambda: Tree(6, 17), "A Tree has at most 16 levels, which is a window of 65,536 tokens, not 17."),
        (
            lambda: NeuralNgram(6, begin=6),
            "NeuralNgram takes begin, the token before the first, from 0 to 5, not 6.",
        ),
        (lambda: NeuralNgram(6, 0), "NeuralNgram needs window to be a whole number of at least 1, not 0."),
        (
            lambda: windows_and_targets(torch.arange(3), 3),
            "Windows of 3 tokens with a target need a text of at least 4 tokens, not of shape (3,).",
        ),
        (
            lambda: Ngram(100_000, 4),
            "4-grams of 100,000 tokens cannot be numbered in 62 bits: choose a lower order or fewer tokens.",
        ),
        (
            lambda: Ngram(5, smoothing="katz"),
            "Ngram has no smoothing 'katz': choose one of add, interpolate, discount, backoff.",
        ),
        (
            lambda: Ngram(5, k=-1),
            "Ngram takes a k of at least 0 and a discount between 0 and 1, not -1 and 0.75.",
        ),
        (
            lambda: Ngram(5, 2, weights=[1.0, 2.0]),
            "Ngram takes 3 weights of at least 0, for the uniform distribution and each order: not [1.0, 2.0].",
        ),
        (lambda: Ngram(5, 2, entries=[1]), "Ngram takes the number of entries of each of its 2 orders, not [1]."),
        (lambda: Ngram.count([], 5), "Ngram.count needs at least one token."),
        (
            lambda: Ngram.count(torch.tensor([1, 5]), 5),
            "Token 5 in row 0, position 1 is not in the vocabulary: tokens are 0 to 4.",
        ),
        (lambda: Ngram.count(torch.ones(3), 5), "Ngram.count takes texts as tensors (n,) of integers."),
    ],
)
def test_errors_speak(call, sentence):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == sentence


def test_the_guide_prints_what_it_shows():
    path = Path(__file__).parents[2] / "docs" / "language.md"
    assert doctest.testfile(str(path), module_relative=False).failed == 0
