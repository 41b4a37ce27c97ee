"""The data of the labs: found where the user says, and split as makemore splits it."""

import doctest
import importlib
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.lab.files import find
from examples.lab.names import contexts, load, splits
from wonderland.core import WonderlandError


@pytest.mark.parametrize("name", ["files", "names"])
def test_doctests(name):
    found = doctest.testmod(importlib.import_module(f"examples.lab.{name}"), optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed


def test_a_file_is_found_by_its_name_its_folder_or_the_environment(tmp_path, monkeypatch):
    (tmp_path / "names.txt").write_text("anna\nbob\n")
    assert load(tmp_path) == load(tmp_path / "names.txt") == ["anna", "bob"]
    monkeypatch.setenv("WONDERLAND_DATA", str(tmp_path))
    assert load() == ["anna", "bob"]
    monkeypatch.delenv("WONDERLAND_DATA")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WonderlandError, match=r"^names\.txt was not found at data\. It holds 32,033 first names"):
        find("names.txt")


def test_what_is_no_name(tmp_path):
    (tmp_path / "names.txt").write_text("anna\nzoë\n")
    with pytest.raises(WonderlandError, match=r"^Name 2, 'zoë', has 'ë' in it: only the letters a to z are known\.$"):
        load(tmp_path)
    (tmp_path / "names.txt").write_text("\n")
    with pytest.raises(WonderlandError, match=r"names\.txt holds no name\.$"):
        load(tmp_path)


def test_splits_are_a_shuffle_that_is_the_same_each_time():
    words = [f"a{'b' * n}" for n in range(30)]
    parts = splits(words)
    assert parts == splits(words)
    assert [len(part) for part in parts] == [24, 3, 3]
    assert sorted([*parts.train, *parts.dev, *parts.test], key=len) == words
    assert parts.train != words[:24]


def test_contexts_without_a_past_and_with_a_long_one():
    x, y = contexts(["ab"], 0)
    assert x.shape == (3, 0)
    x, y = contexts(["ab", "c"], 5)
    assert torch.equal(y, torch.tensor([1, 2, 0, 3, 0]))
    assert x[2].tolist() == [0, 0, 0, 1, 2]
    assert x[3].tolist() == [0, 0, 0, 0, 0]
