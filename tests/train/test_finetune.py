"""Fine-tuning: in full, by the head, or with an adapter; what learns, and what rests."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.models import Decoder, Encoder, PromptTuned, SequenceClassifier, merge
from wonderland.nn import LoRA
from wonderland.train import finetune

SMALL = {"vocab": 6, "dim": 8, "depth": 1}
TEXT = torch.arange(9).repeat(4, 1) % 5 + 1
BATCH = (TEXT[:, :-1], TEXT[:, 1:])


def loss(model) -> float:
    with torch.no_grad():
        return float(torch.nn.functional.cross_entropy(model(BATCH[0]).flatten(0, 1), BATCH[1].flatten()))


@pytest.mark.parametrize(
    ("method", "by"), [("full", 0.1), (LoRA.spec(rank=2), 0.05), (PromptTuned.spec(length=3), 0.005)], ids=str
)
def test_a_model_learns(method, by):
    torch.manual_seed(0)
    model = Decoder(**SMALL)
    before = loss(model)
    found = finetune(model, [BATCH], method=method, steps=20, lr=0.02)
    assert loss(found) < before - by
    assert not found.training
    if isinstance(method, str) or method.name == "nn.LoRA":
        assert abs(loss(merge(found)) - loss(found)) < 1e-5


def test_only_the_head_learns():
    torch.manual_seed(0)
    model = SequenceClassifier(Encoder.spec(**SMALL), 2)
    trunk = {name: value.clone() for name, value in model.trunk.state_dict().items()}
    head = model.head.weight.clone()
    finetune(model, [(TEXT, torch.tensor([0, 1, 0, 1]))], method="head", steps=2)
    assert all(torch.equal(value, trunk[name]) for name, value in model.trunk.state_dict().items())
    assert not torch.equal(model.head.weight, head)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (
            "fall",
            "A model is tuned 'full', by its 'head', or with the spec of an adapter, not 'fall'. Did you mean 'full'?",
        ),
        (
            "head",
            "This Decoder has no separate head, it shares the embedding: tune it in full, or with an adapter.",
        ),
    ],
)
def test_errors_to_the_word(method, words):
    with pytest.raises(WonderlandError) as error:
        finetune(Decoder(**SMALL), [BATCH], method=method)
    assert str(error.value) == words
