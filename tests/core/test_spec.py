import pytest
import torch
from torch import nn

from wonderland.core import Spec, WonderlandError, admit, find, part, parts
from wonderland.models import ConvNet
from wonderland.optim import warmup_cosine


def test_a_spec_builds_as_often_as_needed_and_survives_json():
    spec = ConvNet.spec(channels=1, classes=3, height=8, width=8, dim=8, depth=2)
    one, two = spec.build(), Spec.from_json(spec.to_json()).build()
    assert one is not two
    assert [tuple(p.shape) for p in one.parameters()] == [tuple(p.shape) for p in two.parameters()]


def test_an_unknown_argument_gets_the_nearest():
    with pytest.raises(WonderlandError) as caught:
        ConvNet.spec(channels=1, clases=3)
    assert str(caught.value) == "models.ConvNet has no argument 'clases'. Did you mean 'classes'?"


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "torch.nn.Linear", "models.__class__", "", "models.ConvNet.spec"]
)
def test_only_the_closed_set_is_built(name):
    with pytest.raises(WonderlandError, match="is not a part of Wonderland, so it is not built"):
        Spec.from_json({"part": name, "arguments": {}})


def test_absurd_descriptions_are_refused():
    with pytest.raises(WonderlandError) as caught:
        Spec.from_json({"part": "models.ConvNet", "arguments": {"dim": 1 << 40}})
    assert (
        str(caught.value) == "A model's description asks for a size above the limit of 16,777,216, so it is not built."
    )
    deep = {"part": "models.ConvNet", "arguments": {}}
    for _ in range(40):
        deep = {"part": "models.ConvNet", "arguments": {"dim": deep}}
    with pytest.raises(WonderlandError, match="nested more than 32 levels"):
        Spec.from_json(deep)
    for wrong in (None, [], "x", {"part": 3, "arguments": {}}, {"part": "models.ConvNet"}):
        with pytest.raises(WonderlandError):
            Spec.from_json(wrong)


def test_specs_nest_and_functions_come_from_the_same_set():
    assert find("optim.warmup_cosine") is warmup_cosine
    assert "models.ConvNet" in parts()
    encoded = Spec("models.ConvNet", {"mean": [0.5]}).to_json()
    assert encoded == {"part": "models.ConvNet", "arguments": {"mean": [0.5]}}
    with pytest.raises(WonderlandError, match="holds a Tensor, which JSON cannot"):
        Spec("models.ConvNet", {"mean": torch.ones(1)}).to_json()


def test_a_users_class_is_admitted_by_hand_only():
    class Mine(nn.Module):
        def __init__(self, width: int = 2):
            super().__init__()
            self.linear = nn.Linear(width, width)

    with pytest.raises(WonderlandError):
        Spec.from_json({"part": "own.Mine", "arguments": {}})
    admit([Mine])
    assert isinstance(Spec.from_json({"part": "own.Mine", "arguments": {"width": 3}}).build(), Mine)
    assert part is not None
