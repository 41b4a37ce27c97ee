import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.models import TextCNN


def test_it_is_the_books_on_sentences_longer_than_a_filter():
    torch.manual_seed(0)
    model = TextCNN(30, 4, dim=6, widths=[3, 4], channels=5, pad=None, fixed=True).eval()
    model.known.normal_()
    tokens = torch.randint(30, (7, 9))

    def outside(tokens):
        h = torch.cat([model.embedding.weight[tokens], model.known[tokens]], 2).transpose(1, 2)
        wide = [F.pad(h, (width - 1, width - 1)) for width in (3, 4)]
        actual = [
            nn.AdaptiveMaxPool1d(1)(F.conv1d(x, f.weight, f.bias)).squeeze(2)
            for x, f in zip(wide, model.filters, strict=True)
        ]
        return model.head(torch.cat(actual, 1).relu())

    torch.testing.assert_close(model(tokens), outside(tokens))


def test_padding_on_either_side_and_an_empty_sentence():
    model = TextCNN(30, 4, dim=6, channels=5).eval()
    row = torch.tensor([[3, 8, 2]])
    for left, right in ((0, 4), (4, 0), (2, 3)):
        torch.testing.assert_close(model(F.pad(row, (left, right))), model(row))
    torch.testing.assert_close(model(torch.zeros(1, 5, dtype=torch.int64))[0], model.head.bias)


def test_the_rows_of_the_last_layer_stay_short():
    torch.manual_seed(0)
    model = TextCNN(30, 4, dim=6, channels=5, max_norm=0.3).eval()
    tokens = torch.randint(1, 30, (5, 6))
    before = model(tokens)
    assert bool((model.head.weight.norm(dim=1) > 0.3).any())
    model.constrain()
    assert bool((model.head.weight.norm(dim=1) <= 0.3).all())
    torch.testing.assert_close(model(tokens), before)
    # Once there, the gradient is the plain one, and a row may become shorter again.
    model(tokens).square().sum().backward()
    plain = torch.autograd.grad(
        F.linear(model.features(tokens), model.head.weight, model.head.bias).square().sum(), [model.head.weight]
    )
    torch.testing.assert_close(model.head.weight.grad, plain[0])


def test_it_survives_json():
    spec = TextCNN.spec(vocab=9, classes=2, widths=[2, 3], max_norm=3)
    assert Spec.from_json(spec.to_json()) == spec
    assert len(spec.build().filters) == 2


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: TextCNN(9, 0), "TextCNN needs classes to be a whole number of at least 1, not 0."),
        (lambda: TextCNN(0, 2), "TextCNN needs vocab to be a whole number of at least 1, not 0."),
        (lambda: TextCNN(9, 2, widths=[]), "TextCNN needs at least one width of filter, as in widths=[3, 4, 5]."),
        (lambda: TextCNN(9, 2, widths=[0]), "TextCNN needs every width to be a whole number of at least 1, not 0."),
        (
            lambda: TextCNN(9, 2, pad=9),
            "TextCNN takes pad, the id of the padding token, from 0 to 8, or None for no padding, not 9.",
        ),
        (lambda: TextCNN(9, 2, max_norm=0), "TextCNN takes a max_norm above 0, or None for no limit, not 0."),
        (lambda: TextCNN(9, 2, dropout=1), "TextCNN takes a dropout probability of at least 0 and below 1, not 1."),
        (
            lambda: TextCNN(9, 2)(torch.tensor([[3, 9]])),
            "Token 9 in row 0, position 1 is not in the vocabulary: tokens are 0 to 8.",
        ),
        (
            lambda: TextCNN(9, 2)(torch.zeros(2, 3)),
            "TextCNN takes tokens as whole numbers (int64 or int32), not torch.float32.",
        ),
        (
            lambda: TextCNN(9, 2)(torch.zeros(0, 3)),
            "TextCNN takes tokens (batch, time) with at least one row and one position, not a value of shape (0, 3).",
        ),
        (
            lambda: TextCNN(9, 2)("a sentence"),
            "TextCNN takes tokens (batch, time) with at least one row and one position, not a value of type str.",
        ),
        (
            lambda: TextCNN(9, 2)(torch.ones(1, 2, dtype=torch.int64), torch.ones(1, 2)),
            "TextCNN takes a mask of booleans (1, 2), True where a token is real, not torch.float32 (1, 2).",
        ),
    ],
)
def test_errors_speak(call, sentence):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == sentence
