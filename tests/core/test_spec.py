import pytest
import torch
from torch import nn

from wonderland.core import Part, Spec, WonderlandError, admit, find, part, parts
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


def test_a_missing_argument_is_named_where_it_is_built():
    with pytest.raises(WonderlandError) as caught:
        ConvNet.spec(channels=1, dim=8).build(height=8, width=8)
    assert str(caught.value) == "models.ConvNet cannot be built without classes: write ConvNet(classes=...)."


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


def named_twin(size: int):
    """A class called Twin, of its own at each call."""

    class Twin(Part, nn.Module):
        def __init__(self, width: int = size):
            super().__init__()
            self.linear = nn.Linear(width, width)

    return Twin


def test_two_own_classes_of_one_name_build_themselves():
    first, second = named_twin(2), named_twin(3)
    one, two = first.spec(), second.spec()
    assert type(one.build()) is first
    assert type(two.build()) is second
    assert type(first.spec(width=4).build()) is first
    assert one != two
    assert one == first.spec()


def test_a_name_that_stands_for_two_own_classes_is_refused():
    first, second = named_twin(2), named_twin(3)
    saved = first.spec().to_json()
    assert type(Spec.from_json(saved).build()) is first
    second.spec()
    with pytest.raises(WonderlandError) as caught:
        Spec.from_json(saved)
    twin = f"{__name__}.named_twin.<locals>.Twin"
    assert str(caught.value) == (
        f"own.Twin stands for several classes, {twin} and {twin}: rename all but one, or load with own=[...]."
    )
    with pytest.raises(WonderlandError, match=r"own\.Twin stands for several classes"):
        Spec("own.Twin")
    for chosen in (first, second):
        assert type(Spec.from_json(saved, own=[chosen]).build()) is chosen
        assert Spec.from_json(saved, own=[chosen]).own_parts() == [chosen]
    with pytest.raises(WonderlandError, match="Two different classes are called Twin: rename one of them"):
        Spec.from_json(saved, own=[first, second])


def test_an_own_class_that_nobody_has_any_more_is_in_nobodys_way():
    named_twin(2).spec()
    last = named_twin(3)
    assert type(Spec.from_json(last.spec().to_json()).build()) is last


def test_a_class_defined_again_in_its_module_takes_the_place_of_the_older_one(monkeypatch):
    older, newer = named_twin(2), named_twin(3)
    for each in (older, newer):
        each.__qualname__ = "Twin"
        monkeypatch.setitem(globals(), "Twin", each)
        saved = each.spec().to_json()
        assert type(Spec.from_json(saved).build()) is each
    assert type(older.spec().build()) is older


def test_a_spec_keeps_its_class_when_its_arguments_change():
    first, second = named_twin(2), named_twin(3)
    spec = first.spec(width=5)
    second.spec()
    assert type(spec.changed(width=6).build()) is first
    assert spec.changed(width=6).arguments == {"width": 6}


def test_arguments_of_spec_are_named():
    with pytest.raises(WonderlandError) as caught:
        named_twin(2).spec(3)
    assert str(caught.value) == "Twin.spec takes its arguments by name: write Twin.spec(name=value)."
