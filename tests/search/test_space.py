"""Spaces: settings from points and back, conditions, grids, files, and what is said about wrong ones."""

import pytest

from wonderland import WonderlandError
from wonderland.search import Choice, Float, Integer, Space, read_space
from wonderland.search.space_file import parse_space

FILE = """
[lr]
low = 1e-4
high = 0.1
log = true

[model]
choices = ["TableNet", "GLM"]

["model.depth"]
low = 1
high = 4
when = { model = "TableNet" }

[optimizer.weight_decay]
low = 0.0
high = 0.3
"""


def test_a_space_file_is_read_and_written_back(tmp_path):
    (tmp_path / "space.toml").write_text(FILE)
    space = read_space(tmp_path / "space.toml")
    assert space.names == ["lr", "model", "model.depth", "optimizer.weight_decay"]
    assert space.settings["model.depth"] == Integer(1, 4)
    assert space.settings["lr"] == Float(1e-4, 0.1, log=True)
    assert space.at([0.0, 0.0, 0.99, 1.0]) == {
        "lr": 1e-4, "model": "TableNet", "model.depth": 4, "optimizer.weight_decay": 0.3
    }  # fmt: skip
    assert space.at([1.0, 0.9, 0.9, 0.0]) == {"lr": 0.1, "model": "GLM", "optimizer.weight_decay": 0.0}
    assert parse_space(space.to_json()) == space


def test_settings_have_places_and_back():
    space = Space(
        {
            "a": Float(1e-3, 1, log=True),
            "b": Integer(2, 9),
            "c": Choice(("x", "y", "z")),
            "d": Integer(1, 500, log=True),
        }
    )
    for number in range(50):
        settings = space.sample(0, number)
        assert space.at(space.place(settings)) == settings
        assert all(0 <= place <= 1 for place in space.place(settings))
    assert {space.sample(0, n)["b"] for n in range(200)} == set(range(2, 10))
    assert len(space.encode(space.sample(0, 0))) == 6


def test_a_grid_has_every_combination_once():
    space = Space({"model": Choice(("a", "b")), "depth": Integer(1, 3)}, {"depth": ("model", ("a",))})
    assert space.grid(3) == [
        {"model": "a", "depth": 1},
        {"model": "a", "depth": 2},
        {"model": "a", "depth": 3},
        {"model": "b"},
    ]
    assert Space({"lr": Float(0.01, 1.0, log=True)}).grid(3) == [{"lr": 0.01}, {"lr": 0.1}, {"lr": 1.0}]


def test_the_short_form_of_kinds():
    space = Space.of(
        {"lr": ("log", 1e-4, 1e-2), "dim": ("choice", [32, 64]), "depth": ("integer", 1, 5), "p": ("float", 0, 0.5)}
    )
    assert list(space.settings.values()) == [Float(1e-4, 1e-2, True), Choice((32, 64)), Integer(1, 5), Float(0.0, 0.5)]
    with pytest.raises(WonderlandError) as caught:
        Space.of({"lr": ("logg", 1, 2)})
    assert str(caught.value).startswith("The space of lr is not understood: give ('log', low, high)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lr = 3",
            "lr is 3, not a setting: write low and high, or choices, such as [lr] with low = 1e-4, high = 0.1, log = true.",
        ),
        (
            "[lr]\nlow = 1",
            "lr has no high: write low and high, or choices, such as [lr] with low = 1e-4, high = 0.1, log = true.",
        ),
        ("[lr]\nlow = 2\nhigh = 1", "lr goes from 2 to 1: low has to be less than high, both finite."),
        ("[lr]\nlow = 0.0\nhigh = 1.0\nlog = true", "lr has a logarithmic scale from 0.0: low has to be above 0."),
        ("[lr]\nlow = 0.0\nhigh = inf", "lr goes from 0.0 to inf: low has to be less than high, both finite."),
        ("[lr]\nlow = 'a'\nhigh = 1.0", "low of lr is a number, not 'a'."),
        ("[lr]\nlow = 0\nhigh = 1\nstep = 1", "lr has no key 'step'. Known are low, high, log, choices, when."),
        ("[m]\nchoices = ['a']\nlow = 1", "m has choices and bounds: keep one of them."),
        ("[m]\nchoices = []", "m has 0 choices: give between 1 and 1000."),
        ("[m]\nchoices = [[1]]", "The choices of m are a list of texts, numbers, true or false, not [[1]]."),
        ("[d]\nlow = 1\nhigh = 3\nwhen = {m = 'a'}", "d exists when m has a value, but m is not a choice above it."),
        (
            "[m]\nchoices = ['a']\n[d]\nlow = 1\nhigh = 3\nwhen = {m = 'b'}",
            "d exists when m is 'b', which is not among its choices.",
        ),
        ("", "The space is empty: give at least one setting to search over."),
    ],
)
def test_wrong_files_are_told_to_the_word(text, message, tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(WonderlandError) as caught:
        read_space(path)
    assert str(caught.value) == f"{path}: {message}"


def test_files_that_are_no_toml(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text("[lr")
    with pytest.raises(WonderlandError, match=r"space.toml is not valid TOML: "):
        read_space(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(WonderlandError, match=r"space.toml is not UTF-8 text: a space is a TOML file\."):
        read_space(path)
    with pytest.raises(WonderlandError, match=r"none.toml is missing\."):
        read_space(tmp_path / "none.toml")
