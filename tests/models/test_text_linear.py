"""TextLinear and TextBlend: the equation, packing, padding, and refusals."""

import re

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.models import TextBlend, TextCNN, TextLinear
from wonderland.models.text_linear import pack_features


def test_a_row_is_a_weighted_sum_of_rows_of_the_table():
    model = TextLinear(4, 2)
    fitted = torch.arange(10.0).reshape(5, 2)
    model.set_weights(fitted)
    packed = torch.cat(
        [pack_features(torch.tensor([[3, 0]]), torch.tensor([[0.5, 2.0]])), torch.zeros(1, 3, dtype=torch.long)], 1
    )
    torch.testing.assert_close(model(packed), (0.5 * fitted[3] + 2 * fitted[0] + fitted[4])[None])
    torch.testing.assert_close(model(packed[:, :0]), fitted[4][None])
    torch.testing.assert_close(model(packed.flip(1)), model(packed))


def test_a_blend_gives_both_answers_and_trains_the_network_alone():
    spec = TextBlend.spec(features=5, classes=3, length=4, network=TextCNN.spec(vocab=9, classes=3, dim=4, channels=4))
    model = Spec.from_json(spec.to_json()).build().eval()
    x = torch.cat([torch.tensor([[3, 4, 0, 0]]), pack_features(torch.tensor([[2]]), torch.ones(1, 1))], 1)
    torch.testing.assert_close(model(x)[0], model.linear(x[:, 4:]))
    torch.testing.assert_close(model(x)[1], model.network(x[:, :4]))
    model(x).sum().backward()
    assert model.linear.weight.grad is None
    assert model.network.head.weight.grad is not None


def test_errors_speak():
    def refuses(text, call):
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            call()

    refuses(
        "TextLinear takes packed features, whole numbers (b, k): see pack_features.",
        lambda: TextLinear(2, 2)(torch.zeros(1, 2)),
    )
    blend = TextBlend(5, 3, 4, TextCNN.spec(vocab=9, classes=3))
    refuses("TextBlend takes rows of 4 tokens and then packed features: whole numbers (b, k).",
            lambda: blend(torch.zeros(1, 2, dtype=torch.long)))  # fmt: skip
    refuses("TextLinear needs classes to be a whole number of at least 1, not 0.", lambda: TextLinear(2, 0))
