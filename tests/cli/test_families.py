"""Verbs that take a checkpoint refuse an unknown family before torch is loaded."""

import subprocess
import sys

import pytest

CALL = """
import sys
from wonderland.cli.main import main
code = main(sys.argv[1:])
assert not {"torch", "numpy"} & set(sys.modules), "loaded too early"
sys.exit(code)
"""


@pytest.mark.parametrize(
    "verb",
    [
        ["fit", "a.csv", "--from", "FOLDER"],
        ["embed", "FOLDER", "a.txt", "-o", "a.npy"],
        ["merge", "FOLDER", "FOLDER", "-o", "out"],
        ["neighbours", "a.npy", "a query", "--from", "FOLDER"],
    ],
    ids=lambda verb: verb[0],
)
def test_an_unknown_family_is_named(tmp_path, verb):
    (tmp_path / "config.json").write_text('{"model_type": "bloom"}')
    call = [sys.executable, "-c", CALL, *(str(tmp_path) if word == "FOLDER" else word for word in verb)]
    ended = subprocess.run(call, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "config.json says model_type = 'bloom'. The families that can be loaded are gpt2, llama, " in ended.stderr
