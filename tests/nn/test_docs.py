"""The Python in docs/mixers.md and docs/own_mixer.md runs as it stands."""

import re
import runpy
import textwrap
from pathlib import Path

from wonderland import ops

DOCS = Path(__file__).parents[2] / "docs"
OWN = (DOCS / "own_mixer.md").read_text()


def code(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def run(page: str, folder: Path) -> dict:
    (folder / "guide.py").write_text("\n".join(code(page)))
    return runpy.run_path(str(folder / "guide.py"))


def test_the_code_in_the_guide_runs(tmp_path):
    assert len(code("mixers.md")) >= 2
    assert run("mixers.md", tmp_path)["b"].shape == (2, 1, 16)


def test_the_mixer_of_the_guide_keeps_its_laws_and_trains(tmp_path, capsys):
    names = run("own_mixer.md", tmp_path)
    assert names["loss"] < 0.05
    kept = re.findall(r"^(\w+) +holds", capsys.readouterr().out, re.MULTILINE)
    assert {"causality", "streaming", "padding_invariance", "batch_independence", "gradients", "save_load"} <= set(kept)


def test_the_mixer_of_the_guide_has_twenty_lines():
    written = re.search(r"^class MinGRU.*?(?=^\S|\Z)", code("own_mixer.md")[0], re.DOTALL | re.MULTILINE)
    lines = [line for line in textwrap.dedent(written[0]).splitlines() if line.strip()]
    assert len(lines) <= 20


def test_every_public_operation_is_in_the_guide():
    listed = set(re.findall(r"`(\w+)\(", OWN.split("## Operations to build with")[1]))
    assert listed == set(ops.__all__) - {"algebra", "native", "sound"}  # folders of further operations
