"""Mutated checkpoint folders of published families: loaded or refused in a sentence, within a second and 200 MB."""

import json
import shutil

import pytest

from tests.fuzz.checkpoints import failures, write_checkpoints
from wonderland.checkpoints import load_pretrained
from wonderland.core import WonderlandError


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("checkpoints") / "families"
    home.mkdir()
    return write_checkpoints(home)


def test_a_few_mutations(folders):
    assert failures(folders, range(150)) == []


@pytest.mark.parametrize(
    ("family", "file", "key", "value"),
    [
        ("ModernBert", "config.json", "layer_types", [{}, [], "full_attention", "full_attention"]),
        ("llama", "model.safetensors.index.json", "weight_map", {"lm_head.weight": "x" * 100_000}),
    ],
)
def test_checkpoints_that_once_failed(folders, tmp_path, family, file, key, value):
    whole = next(folder for folder in folders if folder.name == family)
    shutil.copytree(whole, tmp_path / "copy")
    content = json.loads((whole / file).read_text()) | {key: value}
    (tmp_path / "copy" / file).write_text(json.dumps(content))
    with pytest.raises(WonderlandError):
        load_pretrained(tmp_path / "copy")


@pytest.mark.slow
def test_many_mutations(folders):
    assert failures(folders, range(10_000, 14_000)) == []
