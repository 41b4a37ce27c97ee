"""Language modelling and translation as tasks: losses against the definition, refusals."""

import math

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.models import Decoder, EncoderDecoder, packed
from wonderland.tasks import LanguageModelling, Translation
from wonderland.tasks.token_trust import token_measures


def test_language_modelling_ignores_positions_without_target():
    torch.manual_seed(0)
    model, task = Decoder(vocab=11, dim=16, depth=1), LanguageModelling(11)
    x, y = torch.randint(0, 11, (3, 9)), torch.randint(0, 11, (3, 9))
    y[1, 4:] = -100
    expected = F.cross_entropy(model(x).flatten(0, 1)[y.flatten() >= 0], y[y >= 0])
    loss, weight = task.loss(model, Batch({"x": x, "y": y}))
    assert torch.allclose(loss, expected)
    assert weight == 27 - 5
    segments = torch.tensor([[1, 1, 1, 1, 2, 2, 2, 0, 0]] * 3)
    y[segments == 0] = -100
    apart = F.cross_entropy(packed(model, x, segments).flatten(0, 1), y.flatten(), ignore_index=-100)
    loss, weight = task.loss(model, Batch({"x": x, "y": y, "segments": segments}))
    assert torch.allclose(loss, apart)
    assert weight == 7 + 4 + 7
    measures = token_measures(nats=20 * math.log(2), tokens=10, size=5)
    assert measures == pytest.approx({"loss": 2 * math.log(2), "bits_per_byte": 4.0, "perplexity": 4.0})
    assert LanguageModelling.spec(**task.arguments()).build().vocab == 11


def test_translation_hides_padding():
    torch.manual_seed(0)
    model, task = EncoderDecoder(vocab=13, dim=16, depth=1), Translation(vocab=13, read=5)
    x = torch.randint(1, 13, (2, 9))
    x[0, 3:5] = 0
    x[1, 7:] = 0
    y = torch.randint(0, 13, (2, 4))
    y[1, 2:] = -100
    first = F.cross_entropy(model(x[:1, :3], x[:1, 5:])[0], y[0], reduction="sum")
    second = F.cross_entropy(model(x[1:, :5], x[1:, 5:7])[0], y[1, :2], reduction="sum")
    loss, weight = task.loss(model, Batch({"x": x, "y": y}))
    assert torch.allclose(loss, (first + second) / 6, atol=1e-5)
    assert weight == 6


def test_refused_arguments():
    with pytest.raises(
        WonderlandError, match=r"^Language modelling needs a vocabulary of at least two tokens, not 1\.$"
    ):
        LanguageModelling(1)
    with pytest.raises(
        WonderlandError, match=r"^Translation needs vocab of at least 4 and read of at least 1, not 9 and 0\.$"
    ):
        Translation(9, 0)
